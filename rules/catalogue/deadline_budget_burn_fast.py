"""Deadlines are missed so fast that the budget of misses is gone within days."""

from __future__ import annotations

from rules.alert import Alert, Severity, SluicegateAction
from rules.burn import FAST, burn_expression, tiers_in_words
from rules.promql import number
from rules.scope import Scope
from sluicegate.records import AlertName

NAME = AlertName.DEADLINE_BUDGET_BURN_FAST


def build(scope: Scope) -> Alert:
    """Build the alert for misses at 14.4 times the budget in an hour, or 6 times over six."""
    tiers = FAST
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
        severity=Severity.PAGE,
        action=SluicegateAction.OBSERVE,
        summary=f"Queue {scope.queue} misses deadlines much too often.",
        description=(
            f"{number(objective * 100)} % of deadlines are to be met."
            " At this rate a month of misses is used up in days."
            " Expired jobs count as missed; unknown ones do once they are settled too late."
        ),
        by_itself="Nothing: a budget looks back. What is at risk now has alerts of its own.",
        by_a_person=(
            "See which class misses: the panel of deadlines by outcome.",
            "See when it began, and what was deployed or changed then.",
            "Weigh a drain against the misses: many small ones hide behind a quiet queue.",
        ),
        runbook_url=scope.runbook_url(NAME),
        dashboard_url=scope.dashboard_url,
        waits_by_design="a budget looks back over hours; it never leads",
    )
