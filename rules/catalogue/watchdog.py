"""Always firing: whoever stops hearing it knows that Prometheus or Alertmanager is down."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.cases import Case
from rules.scope import Scope
from sluicegate.records import AlertName

NAME = AlertName.WATCHDOG


def build(scope: Scope) -> Alert:
    """Build the alert that never stops."""
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="watchdog",
        when="always",
        expression="vector(1)",
        for_s=0,
        severity=Severity.NONE,
        action=SluicegateAction.OBSERVE,
        summary="Prometheus evaluates the rules and Alertmanager delivers.",
        description=(
            "This alert always fires. Route it to a service that raises the alarm when it has not heard it for a few"
            " minutes; then it is the silence that means something."
        ),
        by_itself=(
            "Nothing. Without Prometheus the controller still tightens by itself, and opens the run when no webhook"
            " comes in time."
        ),
        by_a_person=(
            "When the silence is reported: see whether Prometheus and Alertmanager run and reach each other.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        waivers=(("alert-comparison", "it fires always: its silence is what is heard"),),
        cases=(Case("a healthy queue", {}, fires=True),),
    )
