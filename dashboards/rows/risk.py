"""Are deadlines at risk: slack and age, for the queue and by class, and the wait a new job would see."""

from __future__ import annotations

from dashboards.model import Colour, Kind, Panel, Row, Step, Unit
from dashboards.queries import plot
from sluicegate import records, telemetry
from sluicegate.records import AlertName
from sluicegate.settings import Contract

_CLASS = f"{{{{{telemetry.CLASS_LABEL}}}}}"


def build(contract: Contract) -> Row:
    """Build the row."""
    return Row(
        300, "Are deadlines at risk?", (_slack(contract), _age(contract), *_by_class(), _wait(contract), _outcomes())
    )


def _slack(contract: Contract) -> Panel:
    bounds = contract.thresholds
    return Panel(
        id=301,
        title="Deadline slack",
        says=(
            "One unfinished job in ten has less time left than this. Lines: refuse new jobs, and recovered. What is off"
            " the scale is not at risk."
        ),
        kind=Kind.LINES,
        unit=Unit.SECONDS,
        queries=(plot(records.SLACK, "slack p10"),),
        no_value="no unfinished job, or no telemetry: see the first row",
        alerts=(AlertName.DEADLINE_SLACK_LOW, AlertName.RECOVERY_HOLD, AlertName.REOPENED_UNSAFE),
        steps=(
            Step(None, Colour.BAD),
            Step(bounds.reject_slack_p10_seconds, Colour.WARN),
            Step(bounds.recovered_slack_p10_seconds, Colour.GOOD),
        ),
        # When the short deadlines are done only those far away are left, and the lines would lie on the axis.
        at_most=bounds.recovered_slack_p10_seconds * 5,
    )


def _age(contract: Contract) -> Panel:
    bounds = contract.thresholds
    return Panel(
        id=302,
        title="Queue age",
        says="One ready job in twenty has waited longer than p95. Lines: recovered, refuse new jobs, drain.",
        kind=Kind.LINES,
        unit=Unit.SECONDS,
        queries=(plot(records.QUEUE_AGE, "age p95"), plot(records.OLDEST_AGE, "oldest")),
        no_value="no telemetry",
        alerts=(
            AlertName.QUEUE_AGE_HIGH,
            AlertName.QUEUE_AGE_CRITICAL,
            AlertName.RECOVERY_HOLD,
            AlertName.TELEMETRY_ABSENT,
        ),
        steps=(
            Step(None, Colour.GOOD),
            Step(bounds.recovered_age_p95_seconds, Colour.NOTICE),
            Step(bounds.reject_age_p95_seconds, Colour.WARN),
            Step(bounds.drain_age_p95_seconds, Colour.BAD),
        ),
    )


def _by_class() -> tuple[Panel, Panel]:
    return (
        Panel(
            id=303,
            title="Slack by class",
            says="Which class is short of time. A class without an unfinished job has no line.",
            kind=Kind.LINES,
            unit=Unit.SECONDS,
            queries=(plot(records.CLASS_SLACK, _CLASS),),
            no_value="no unfinished job, or no telemetry: see the first row",
            alerts=(AlertName.DEADLINE_BREACH_FORECAST,),
            width=8,
        ),
        Panel(
            id=304,
            title="Age p95 by class",
            says="Which class waits.",
            kind=Kind.LINES,
            unit=Unit.SECONDS,
            queries=(plot(records.CLASS_AGE, _CLASS),),
            no_value="no telemetry",
            width=8,
        ),
    )


def _wait(contract: Contract) -> Panel:
    return Panel(
        id=305,
        title="Predicted wait",
        says=(
            "What a job of a class submitted now would wait. If its deadline leaves less, it is refused; line: the"
            " shortest deadline."
        ),
        kind=Kind.LINES,
        unit=Unit.SECONDS,
        queries=(
            plot(records.CLASS_PREDICTED_WAIT, f"wait {_CLASS}"),
            plot(records.CLASS_DEADLINE, f"deadline {_CLASS}"),
        ),
        no_value="too few completions to predict, or no telemetry",
        alerts=(AlertName.NEW_WORK_WILL_MISS,),
        steps=(Step(None, Colour.GOOD), Step(contract.shortest_deadline_s, Colour.BAD)),
        width=8,
    )


def _outcomes() -> Panel:
    outcome = f"{{{{{telemetry.OUTCOME_LABEL}}}}}"
    return Panel(
        id=306,
        title="Deadlines by outcome",
        says="Met, missed (done late) and expired (never done), by class, since the queue was opened.",
        kind=Kind.LINES,
        unit=Unit.COUNT,
        queries=(plot(records.CLASS_OUTCOMES, f"{_CLASS} {outcome}"),),
        no_value="no telemetry",
        alerts=(AlertName.DEADLINE_BUDGET_BURN_FAST, AlertName.DEADLINE_BUDGET_BURN_SLOW),
        width=24,
    )
