"""What the gate does now, why, and which alerts asked for it."""

from __future__ import annotations

from dashboards.model import Colour, Kind, Panel, Query, Row, Step, Unit
from dashboards.queries import firing_alerts, plot
from sluicegate import records, telemetry
from sluicegate.gate import DrainState
from sluicegate.records import AlertName
from sluicegate.settings import Contract

_COLOURS = (
    (DrainState.ADMIT.value, Colour.GOOD),
    (DrainState.REJECT_NEW.value, Colour.NOTICE),
    (DrainState.RECOVERING.value, Colour.UNDER_WAY),
    (DrainState.DRAIN.value, Colour.BAD),
)


def build(contract: Contract) -> Row:
    """Build the row."""
    del contract  # what the gate may do has no threshold of its own
    return Row(200, "Admit, drain or roll back?", (*_now(), *_why()))


def _now() -> tuple[Panel, ...]:
    return (
        Panel(
            id=201,
            title="Gate",
            says="The state of the gate that is in effect; exactly one at a time.",
            kind=Kind.STATES,
            unit=Unit.COUNT,
            queries=(plot(records.DRAIN_STATE, f"{{{{{telemetry.DRAIN_STATE}}}}}"),),
            no_value="no telemetry",
            alerts=(AlertName.GATE_PINNED, AlertName.RECOVERY_HOLD, AlertName.GATE_STUCK_CLOSED),
            steps=(Step(None, Colour.NOTICE),),
            colours=_COLOURS,
        ),
        Panel(
            id=202,
            title="Firing alerts",
            says="What Prometheus says is wrong, from the first evaluation past `for` on. The watchdog is left out.",
            kind=Kind.STATES,
            unit=Unit.COUNT,
            queries=(Query(firing_alerts(), "{{alertname}}"),),
            no_value="no alert fires",
            steps=(Step(None, Colour.BAD),),
        ),
        Panel(
            id=203,
            title="Share of new jobs admitted",
            says="0 when the gate is closed or the controller is silent, in between during a ramp, 1 when open.",
            kind=Kind.LINES,
            unit=Unit.RATIO,
            queries=(plot(records.ADMISSION_RATIO, "admitted"),),
            no_value="no telemetry",
        ),
        Panel(
            id=204,
            title="Canary successes in a row",
            says="In a recovery, until it is green; frozen there.",
            kind=Kind.LINES,
            unit=Unit.COUNT,
            queries=(plot(records.CANARY_OK_COUNT, "successes"),),
            no_value="no telemetry",
            alerts=(AlertName.RECOVERY_HOLD,),
        ),
    )


def _why() -> tuple[Panel, ...]:
    return (
        Panel(
            id=205,
            title="Live run",
            says="The run that holds the queue's lock, and the step it is in.",
            kind=Kind.STATES,
            unit=Unit.COUNT,
            queries=(plot(records.RUN_LIVE, f"{{{{{telemetry.RUNBOOK_LABEL}}}}}: {{{{{telemetry.STEP_LABEL}}}}}"),),
            no_value="no run is live",
            alerts=(AlertName.EXECUTOR_HOLDING, AlertName.EXECUTOR_DEAD),
            steps=(Step(None, Colour.NOTICE),),
            width=8,
        ),
        Panel(
            id=206,
            title="Pin",
            says="Why only a named person may loosen the gate.",
            kind=Kind.STATES,
            unit=Unit.COUNT,
            queries=(plot(records.GATE_PINNED, f"{{{{{telemetry.REASON_LABEL}}}}}"),),
            no_value="no telemetry",
            alerts=(AlertName.GATE_PINNED,),
            steps=(Step(None, Colour.WARN),),
            width=8,
        ),
        Panel(
            id=207,
            title="Rolled back because",
            says="Why the gate is rolled back; at most one at a time.",
            kind=Kind.STATES,
            unit=Unit.COUNT,
            queries=(plot(records.ROLLBACK_REASON, f"{{{{{telemetry.ROLLBACK_REASON}}}}}"),),
            no_value="no telemetry",
            steps=(Step(None, Colour.BAD),),
            width=8,
        ),
        Panel(
            id=208,
            title="Controller's decision",
            says="Its last decision and the reason; the gate must not be looser than that.",
            kind=Kind.STATES,
            unit=Unit.COUNT,
            queries=(plot(records.DECISION, f"{{{{{telemetry.ACTION_LABEL}}}}}: {{{{{telemetry.REASON_LABEL}}}}}"),),
            no_value="no telemetry",
            alerts=(AlertName.DECISION_NOT_APPLIED,),
            steps=(Step(None, Colour.NOTICE),),
        ),
        Panel(
            id=209,
            title="Returns to reject_new",
            says="How often it came back soon after it had left; four in a short time are too many.",
            kind=Kind.LINES,
            unit=Unit.COUNT,
            queries=(plot(records.REJECT_RETURNS, "returns"),),
            no_value="no telemetry",
            alerts=(AlertName.GATE_FLAPPING,),
        ),
    )
