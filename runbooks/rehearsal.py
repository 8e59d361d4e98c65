"""Run a runbook's own tests: what would start, and what a step comes to, by the gates that a run goes by. Pure.

Nothing is called and nothing is written. Figures come from the test; the settings are those given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runbooks.alerts import Alert, NotUnderstood, parse
from runbooks.context import Context
from runbooks.gates import Measurement, burn_down_gate, canary_gate, reopen_gate
from runbooks.given import AT_MS, looks_given, reading
from runbooks.model import OnTimeout, Runbook, Step
from runbooks.rehearsal_model import RunbookTest, State, When
from runbooks.start import obstacles
from runbooks.verbs.approve import Approve
from runbooks.verbs.burn_down import BurnDown
from runbooks.verbs.canary import Canary
from runbooks.verbs.reconcile import Reconcile
from runbooks.verbs.reopen import Reopen
from runbooks.verbs.step import NoData
from runbooks.verbs.wait_for import WaitFor
from runbooks.verdict import CheckResult, Verdict, overall
from runbooks.watch import Judgement, Look, Standing
from sluicegate.damage import was_measured
from sluicegate.errors import SettingsError
from sluicegate.gate import DrainState
from sluicegate.telemetry import Part, Telemetry

NO_ALERT = "no_alert"
NO_DATA = "no_data"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold what a test came to: whether a run would start, or a step's state; with the reason where there is one."""

    starts: bool | None = None
    state: State | None = None
    admission: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Hold one test that was run: its name, and a sentence for everything that came out otherwise."""

    name: str
    differences: tuple[str, ...]


def rehearse(runbook: Runbook, context: Context, folder: Path) -> tuple[Report, ...]:
    """Run every test of a runbook; paths of payloads are taken from `folder`.

    Raises SettingsError for a payload that is not there or no webhook, and for a step that the runbook has not.
    """
    return tuple(Report(test.name, tuple(_differences(test, runbook, context, folder))) for test in runbook.tests)


def _differences(test: RunbookTest, runbook: Runbook, context: Context, folder: Path) -> Iterator[str]:
    came = _step(test, test.when, runbook, context) if test.when else _start(test, runbook, context, folder)
    for name in ("starts", "state", "admission", "reason"):
        wanted, got = getattr(test.then, name), getattr(came, name)
        if wanted is not None and wanted != got:
            yield f"{name} is {_said(got)}, not {_said(wanted)}"


def _said(value: object) -> str:
    return {None: "none", True: "true", False: "false"}.get(value) or str(value)  # type: ignore[call-overload]  # hashable


def _start(test: RunbookTest, runbook: Runbook, context: Context, folder: Path) -> Outcome:
    telemetry = reading(test.given, 0, AT_MS, context.settings.queue, context.contract)
    admission = "open" if telemetry.gate.drain_state == DrainState.ADMIT else "closed"
    if test.given.webhook is not None and not _asked(runbook, _alerts(folder / test.given.webhook)):
        return Outcome(starts=False, admission=admission, reason=NO_ALERT)
    hindrances = obstacles(runbook, telemetry, context)
    if hindrances:
        return Outcome(starts=False, admission=admission, reason=hindrances[0].rule)
    # Opening a run that holds the lock is its freeze; one beside it moves nothing by being opened.
    return Outcome(starts=True, admission=admission if runbook.beside else "closed")


def _asked(runbook: Runbook, alerts: Sequence[Alert]) -> bool:
    """Say whether a firing alert asks for the runbook, on whatever queue; a resolved one asks for nothing."""
    trigger = runbook.trigger
    return any(one.firing and trigger.matches(one.labels) and one.labels.get(trigger.queue_label) for one in alerts)


def _alerts(path: Path) -> tuple[Alert, ...]:
    try:
        return parse(path.read_bytes()).alerts
    except OSError as error:
        raise SettingsError(f"The recorded webhook {path} cannot be read: {error.strerror}.") from error
    except NotUnderstood as error:
        raise SettingsError(f"The recorded webhook {path} is none: {error}") from error


def _step(test: RunbookTest, when: When, runbook: Runbook, context: Context) -> Outcome:
    step = runbook.step(when.step)
    if step is None:
        verbs = ", ".join(one.verb for one in runbook.steps)
        raise SettingsError(f"Test {test.name!r} is of step {when.step}, which {runbook.name} has not.", verbs)
    rehearsal = _Rehearsal(runbook, step, context)
    came = Outcome(state=State.WAITING)
    for look in range(looks_given(test.given)):
        elapsed_s = when.after_s + look * when.every_s
        telemetry = reading(test.given, look, AT_MS + round(elapsed_s * 1000), context.settings.queue, context.contract)
        came = rehearsal.look(telemetry, elapsed_s)
        if came.state not in (State.WAITING, State.HOLDING):
            break
    # A run that holds the lock has closed the gate; one beside it leaves it as it is given.
    stands_open = runbook.beside and test.given.gate.drain_state == DrainState.ADMIT
    admission = "open" if stands_open or came.state is State.REOPENED else "closed"
    return Outcome(state=came.state, admission=admission, reason=came.reason)


class _Rehearsal:
    """Let one step look again and again; it remembers what a run would have in its journal."""

    def __init__(self, runbook: Runbook, step: Step, context: Context) -> None:
        self._runbook = runbook
        self._step = step
        self._context = context
        self._looks: list[Look] = []
        self._measured: list[Measurement] = []

    def look(self, telemetry: Telemetry, elapsed_s: float) -> Outcome:
        """Look once, `elapsed_s` seconds after the step began."""
        came = self._judged(telemetry, elapsed_s)
        if came.state is State.WAITING and elapsed_s > self._step.timeout.resolve(self._context):
            return self._late(came.reason)
        return came

    def _judged(self, telemetry: Telemetry, elapsed_s: float) -> Outcome:
        contract = self._context.contract
        match self._step.params:
            case WaitFor() as waiting:
                return self._waited(waiting, telemetry)
            case Approve(gate=gate) if gate is not None:
                return self._watched(gate.judge(telemetry, self._context), gate.no_data)
            case Canary():
                return self._gated(canary_gate(telemetry, contract, elapsed_s), State.DONE)
            case BurnDown():
                self._measured.append(Measurement.of(telemetry))
                return self._gated(burn_down_gate(self._measured, contract), State.DONE)
            case Reopen():
                checks = reopen_gate(telemetry, contract)
                late = elapsed_s >= contract.timings.gate_timeout_s
                return self._gated(checks, State.REOPENED, final=late)
            case Reconcile():
                if not was_measured(telemetry, Part.UNKNOWN):
                    return Outcome(state=State.WAITING, reason=NO_DATA)
                return Outcome(state=State.DONE if telemetry.unknown == 0 else State.WAITING)
            case _:
                return Outcome(state=State.WAITING)

    def _waited(self, waiting: WaitFor, telemetry: Telemetry) -> Outcome:
        judged = waiting.watch.judge(telemetry, self._context)
        self._looks.append(Look(telemetry.at_ms, judged.standing))
        if waiting.has_held(self._looks, self._context):
            return Outcome(state=State.DONE)
        return self._watched(judged, waiting.watch.no_data)

    def _watched(self, judged: Judgement, no_data: NoData | None) -> Outcome:
        blind = judged.standing is Standing.NO_DATA
        if judged.standing is Standing.BREACHED or (blind and no_data is NoData.ROLLBACK):
            return self._failed()
        return Outcome(state=State.WAITING, reason=NO_DATA if blind else None)

    def _gated(self, checks: tuple[CheckResult, ...], passed: State, *, final: bool = True) -> Outcome:
        verdict = overall(checks)
        if verdict is Verdict.PASS:
            return Outcome(state=passed)
        if final and (verdict is Verdict.FAIL or passed is State.REOPENED):
            return self._failed()
        blind = any(check.value is None and check.verdict is Verdict.INCONCLUSIVE for check in checks)
        return Outcome(state=State.WAITING, reason=NO_DATA if blind else None)

    def _failed(self) -> Outcome:
        if self._runbook.beside:
            return Outcome(state=State.FAILED)
        return Outcome(state=State.ROLLED_BACK, reason=self._runbook.reason(self._step.verb).value)

    def _late(self, reason: str | None) -> Outcome:
        if self._step.on_timeout is OnTimeout.HOLD:
            return Outcome(state=State.HOLDING, reason=reason)
        return self._failed()
