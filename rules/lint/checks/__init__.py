"""What is refused? One check a file; the file and the check share their name."""

from __future__ import annotations

from rules.lint.check import Check
from rules.lint.checks import (
    alert_absent,
    alert_annotations,
    alert_comparison,
    alert_keep,
    alert_labels,
    alert_template,
    burn_reachable,
    file_shape,
    forecast_window,
    group_interval,
    page_latency,
    page_utilization,
    promql_counter,
    promql_features,
    promql_fragile,
    promql_impossible,
    promql_nan,
    promql_rate,
    promql_regexp,
    promql_selector,
    promql_syntax,
    rule_dependency,
    rule_duplicate,
    runbook_page,
)

# In the order of the page: the file, the expression, the alert, the page, the rest.
CHECKS: tuple[Check, ...] = (
    file_shape.CHECK,
    promql_syntax.CHECK,
    promql_features.CHECK,
    promql_regexp.CHECK,
    promql_rate.CHECK,
    promql_counter.CHECK,
    promql_nan.CHECK,
    promql_fragile.CHECK,
    promql_impossible.CHECK,
    promql_selector.CHECK,
    alert_comparison.CHECK,
    alert_absent.CHECK,
    alert_annotations.CHECK,
    alert_labels.CHECK,
    alert_template.CHECK,
    alert_keep.CHECK,
    page_utilization.CHECK,
    page_latency.CHECK,
    forecast_window.CHECK,
    burn_reachable.CHECK,
    group_interval.CHECK,
    rule_dependency.CHECK,
    rule_duplicate.CHECK,
    runbook_page.CHECK,
)
