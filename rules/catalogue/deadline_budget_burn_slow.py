"""Deadlines are missed a little too often, for days."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.burn import SLOW, burn_expression, tiers_in_words
from rules.promql import number
from rules.scope import Scope
from sluicegate.records import AlertName

NAME = AlertName.DEADLINE_BUDGET_BURN_SLOW


def build(scope: Scope) -> Alert:
    """Build the alert for misses at 3 times the budget over a day, or all of it over three."""
    tiers = SLOW
    objective = scope.settings.monitoring.deadline_objective
    return Alert(
        name=NAME,
        queue=scope.queue,
        signal="deadline_budget",
        when=tiers_in_words(tiers),
        expression=burn_expression(scope, tiers),
        for_s=scope.timing.for_s,
        keep_firing_for_s=scope.timing.keep_s,
        looks_back_s=max(tier.long_s for tier in tiers),
        severity=Severity.TICKET,
        action=SluicegateAction.OBSERVE,
        summary=f"Queue {scope.queue} misses deadlines a little too often, for a long time.",
        description=(
            f"{number(objective * 100)} % of deadlines are to be met."
            " At this rate the month will end with more misses than that."
            " Expired jobs count as missed; unknown ones do once they are settled too late."
        ),
        by_itself="Nothing: a budget looks back. What is at risk now has alerts of its own.",
        by_a_person=(
            "See which class misses: the panel of deadlines by outcome.",
            "See when it began, and what was deployed or changed then.",
            "Change one threshold, one deadline or the number of workers, and look again in a day.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
    )
