"""A job has been unknown for so long that neither ledger nor provider will settle it by itself."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, clock
from rules.promql import number
from rules.scope import Scope
from rules.situations import fires_in_drain, over, under
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import OLDEST_UNKNOWN_TIMESTAMP_SECONDS, QUEUE_LABEL

NAME = AlertName.UNKNOWN_NOT_RECONCILED


def bound_s(scope: Scope) -> float:
    """Give how long the automatic ways need: they are asked once, and once more after an unclear answer."""
    reconcile = scope.settings.reconcile
    return reconcile.after_s + reconcile.ask_again_s + scope.settings.contract.lease_ms / 1000


def build(scope: Scope) -> Alert:
    """Build the alert for a job that is unknown for longer than its settling takes; both times are of Redis."""
    bound = bound_s(scope)
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="unknown_age",
        when=f"a job has been unknown for over {number(bound)} s",
        expression=(
            f"{scope.series(records.SNAPSHOT)} - on ({QUEUE_LABEL}) {scope.series(records.OLDEST_UNKNOWN)}"
            f" > {number(bound)}"
        ),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.RECONCILE,
        summary=f"Nobody can tell what became of a job on queue {scope.queue}: a person must find out.",
        description=(
            f"A side effect may have happened, nobody saw its end, and {number(bound)} seconds of asking have not"
            " settled it. Until it is settled the job is neither repeated nor given up."
        ),
        by_itself="Ledger and provider go on being asked, ever more seldom. The job is never repeated unproven.",
        by_a_person=(
            "List them: `sluicegate queue unknown`; each names its job, class and idempotency key.",
            "Ask the provider, or whoever owns the effect, what became of the key.",
            (
                "Say what you found (succeeded, failed, retry or block): "
                "`sluicegate queue reconcile JOB --outcome succeeded --as YOU --reason WHY`."
            ),
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        waits_by_design="ledger and provider are asked first",
        cases=_cases(bound),
    )


def _cases(bound: float) -> tuple[Case, ...]:
    oldest = OLDEST_UNKNOWN_TIMESTAMP_SECONDS
    risk = {oldest: clock(over(bound))}
    return (
        Case("just over the bound", risk, fires=True),
        Case("at the bound", {oldest: clock(bound)}, fires=False),
        Case("just under it", {oldest: clock(under(bound))}, fires=False),
        Case("none unknown, so no sample", {oldest: None}, fires=False),
        fires_in_drain(risk),
    )
