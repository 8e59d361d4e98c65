"""A declared queue shows the same reading again and again: what it shows is not now."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal, clock
from rules.promql import duration
from rules.scope import Scope
from sluicegate.records import AlertName
from sluicegate.telemetry import SNAPSHOT_TIMESTAMP_SECONDS

NAME = AlertName.TELEMETRY_STALE


def build(scope: Scope) -> Alert:
    """Build the alert for readings whose own timestamp stands still."""
    stale_after = duration(scope.timing.stale_after_s)
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="telemetry",
        when=f"the reading's timestamp has stood still for {stale_after}",
        expression=scope.frozen,
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        seen_after_s=scope.timing.stale_after_s,
        severity=Severity.PAGE,
        action=SluicegateAction.HOLD,
        summary=f"The figures of queue {scope.queue} stand still: its alerts are blind.",
        description=(
            f"The exporter has shown one and the same reading for at least {stale_after}. Old figures are worse than"
            " none: the alerts on age, slack and provider stay silent meanwhile."
        ),
        by_itself=(
            "Verdicts that need fresh figures are inconclusive, so nothing reopens on them. The controller reads Redis"
            " itself and goes on deciding."
        ),
        by_a_person=(
            "See whether something between the exporter and Prometheus caches its page.",
            "Restart the exporter; it keeps nothing.",
            "If the clock of Redis stands still or ran backwards, look at that host.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=(
            Case("it stands still", {SNAPSHOT_TIMESTAMP_SECONDS: Signal(0)}, fires=True),
            Case("it lags, but moves", {SNAPSHOT_TIMESTAMP_SECONDS: clock(3600)}, fires=False),
            Case("no such series", {SNAPSHOT_TIMESTAMP_SECONDS: None}, fires=False),
        ),
    )
