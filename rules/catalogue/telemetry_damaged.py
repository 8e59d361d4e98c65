"""A part of the queue's data was written over or cut by hand: what is made of it is not shown, and nobody would see."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case, Signal
from rules.promql import duration
from rules.scope import Scope
from rules.situations import key
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.telemetry import COLLECTOR_DAMAGED, PART_LABEL, Part

NAME = AlertName.TELEMETRY_DAMAGED


def build(scope: Scope) -> Alert:
    """Build the alert for a damaged part: its figures have no sample, and to most alerts that looks like nothing wrong.

    The part is a label, so each is told by itself.
    """
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="telemetry",
        when=f"a part of the queue's data has been damaged for {duration(scope.timing.absent_for_s)}",
        expression=f"{scope.series(records.DAMAGED)} == 1",
        for_s=scope.timing.absent_for_s,
        keep_firing_for_s=scope.timing.keep_s,
        severity=Severity.PAGE,
        action=SluicegateAction.HOLD,
        summary=f"A part of the data of queue {scope.queue} is damaged: the alerts that need it are blind.",
        description=(
            f"What Redis holds of `{{{{ $labels.{PART_LABEL} }}}}` was written over or cut by hand, so no figure is"
            " made of it. The alerts that compare such a figure stay silent whatever happens."
        ),
        by_itself=(
            "The figures of the other parts go on. A run's gate that needs one of the missing does not pass. The"
            " controller goes on with what is left."
        ),
        by_a_person=(
            "See what is damaged: `sluicegate queue stats`.",
            "Find what else writes to the queue's keys, and stop it: nothing but Sluicegate may.",
            "`provider` and `completions` come right by themselves after a window; a total does once it is deleted.",
            "Anything else: close the gate by name (`sluicegate gate drain --as YOU --reason WHY`).",
            "`sluicegate queue doctor` then names a job that nothing lists any more, and how many are like it.",
            "A snapshot from before the damage brings them back on an empty server; one from now lacks them.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        cases=_cases(),
    )


def _cases() -> tuple[Case, ...]:
    provider, ready = (key(COLLECTOR_DAMAGED, **{PART_LABEL: part}) for part in (Part.PROVIDER, Part.READY))
    of_provider, of_ready = {PART_LABEL: Part.PROVIDER.value}, {PART_LABEL: Part.READY.value}
    return (
        Case("one part", {provider: Signal(1), ready: Signal(0)}, fires=True, labels=of_provider),
        Case("two parts", {provider: Signal(1), ready: Signal(1)}, True, of_provider, also=(of_ready,)),
        Case("none", {provider: Signal(0), ready: Signal(0)}, fires=False),
        Case("no such series", {provider: None, ready: None}, fires=False),
    )
