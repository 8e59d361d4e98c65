"""Who hears which alert, and which alert silences which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rules.alert import Alert, SluicegateAction
from sluicegate.records import AlertName
from sluicegate.telemetry import QUEUE_LABEL

AUTOMATION_RECEIVER = "sluicegate-automation"
PAGES_RECEIVER = "pages"
HEARTBEAT_RECEIVER = "heartbeat"
NOBODY_RECEIVER = "nobody"

# What may be silenced: advice that a graver alert of the same queue makes pointless. An alert that drains, rolls back
# or says that figures are missing is never silenced; that would hide the reason for acting.
_ADVICE = (AlertName.QUEUE_AGE_HIGH, AlertName.DEADLINE_SLACK_LOW, AlertName.RECOVERY_HOLD)
_OUTLOOK = (AlertName.DEADLINE_BREACH_FORECAST, AlertName.NEW_WORK_WILL_MISS)
_EQUAL = (QUEUE_LABEL,)


@dataclass(frozen=True, slots=True)
class Inhibition:
    """While one of `sources` fires, `targets` with the same `equal` labels are silent; `why` goes into the file."""

    why: str
    sources: tuple[AlertName, ...]
    targets: tuple[AlertName, ...]
    equal: tuple[str, ...] = _EQUAL


class Unlabelled(ValueError):
    """Say that an inhibition names an alert without the label it is matched on: it would silence strangers."""


def inhibitions(alerts: Sequence[Alert]) -> tuple[Inhibition, ...]:
    """Return the inhibitions among these alerts.

    Raises Unlabelled where a side lacks an `equal` label: Alertmanager takes two missing labels for equal ones.
    """
    drains = tuple(alert.name for alert in alerts if alert.action is SluicegateAction.DRAIN)
    made = (
        Inhibition("A drain includes refusing new jobs and holding.", drains, (*_ADVICE, *_OUTLOOK)),
        Inhibition(
            "A rollback includes all of that.",
            (AlertName.DUPLICATE_SIDE_EFFECT,),
            (*_ADVICE, *_OUTLOOK, AlertName.GATE_STUCK_CLOSED),
        ),
        Inhibition(
            "Blind: what the last figures advised is not advice any more.",
            (AlertName.TELEMETRY_ABSENT, AlertName.TELEMETRY_STALE, AlertName.TELEMETRY_BLIND),
            (*_ADVICE, *_OUTLOOK),
        ),
        Inhibition(
            "Controller and executor are one process: what it leaves undone is no news.",
            (AlertName.CONTROLLER_SILENT,),
            (AlertName.DECISION_NOT_APPLIED, AlertName.EXECUTOR_DEAD, AlertName.GATE_STUCK_CLOSED),
        ),
        Inhibition("A dead executor holds, of course.", (AlertName.EXECUTOR_DEAD,), (AlertName.EXECUTOR_HOLDING,)),
        Inhibition(
            "A reopening that was not rolled back is a decision that was not applied.",
            (AlertName.REOPENED_UNSAFE,),
            (AlertName.DECISION_NOT_APPLIED,),
        ),
        Inhibition(
            "What burns fast burns slowly too.",
            (AlertName.DEADLINE_BUDGET_BURN_FAST,),
            (AlertName.DEADLINE_BUDGET_BURN_SLOW,),
        ),
    )
    check_labels(made, alerts)
    return made


def check_labels(made: Sequence[Inhibition], alerts: Sequence[Alert]) -> None:
    """Raise Unlabelled for the first inhibition that names an alert which lacks one of its `equal` labels."""
    labels = {alert.name: alert.labels for alert in alerts}
    for inhibition in made:
        for name in (*inhibition.sources, *inhibition.targets):
            missing = [label for label in inhibition.equal if not labels.get(name, {}).get(label)]
            if missing:
                raise Unlabelled(
                    f"The inhibition `{inhibition.why}` compares the label {missing[0]}, but the alert {name} has none."
                )
