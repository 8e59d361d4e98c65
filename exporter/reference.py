"""Write docs/reference/metrics.md from the declared metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from exporter.catalogue import BACKLOG, BUILD, CLASSES, FIELDS, FLOW, GATE, PAGE, PROVIDER, READING
from exporter.figure import Figure

_GROUPS: tuple[tuple[str, str, tuple[Figure[Any], ...]], ...] = (
    (
        "The nine fields",
        "The public interface: never renamed, never prefixed. Percentiles are nearest rank.",
        FIELDS,
    ),
    ("The backlog", "How much work there is, and how much of it is already lost.", BACKLOG),
    (
        "By class",
        "Names of their own, so that no total stands beside its parts; `other` is what no contract declares any more.",
        CLASSES,
    ),
    ("The provider", "Counters that outlive the window, and the window behind the two rates.", PROVIDER),
    ("The gate", "What it lets through, why, and who may move it next.", GATE),
    (
        "What happened",
        "Totals kept in Redis: they move once a change of state, survive every restart and are never reset by a read.",
        FLOW,
    ),
    (
        "The exporter itself",
        "In every scrape, so that missing figures have a reason; process_ and python_ metrics are beside them.",
        (*READING, *PAGE, *BUILD),
    ),
)

_HEAD = """# Metrics

Generated from the exporter's catalogue by `sluicegate exporter reference`; edit the catalogue, not this page.

- What is known to be empty is 0 (slack, rates and timestamps of nothing: no sample). What can't be read has no sample
  and `sluicegate_redis_up` is 0. No figure is ever NaN, and no value outlives its scrape.
- All figures of a queue are from one instant of Redis time, `sluicegate_snapshot_timestamp_seconds`.
- Two exporters on one queue show the same values a moment apart: aggregate with `max by` (slack: `min by`),
  never `sum`.
- `canary_ok_count` ends in `_count` without being a histogram, which linters warn of. The name is part of the
  interface; `sluicegate_canary_consecutive_successes` is the same value under a name they accept.
- The twin of every "time since" is an instant, so that `time() - instant` keeps rising if the exporter stops. Of an age
  without a twin of its own it is `age + time() - sluicegate_snapshot_timestamp_seconds`.
- Data that somebody wrote over, or took away, costs the figures that are made from it their samples, and
  `sluicegate_collector_success` is 0: nothing is shown that would look better than it is.
- `deadline_slack_p10_seconds` and the ages need no `rate()`; a percentile gauge does not add up over queues or classes.
"""


def reference() -> str:
    """Give the whole page as Markdown."""
    return "\n".join([_HEAD, *(_group(title, text, figures) for title, text, figures in _GROUPS)])


def _group(title: str, text: str, figures: Iterable[Figure[Any]]) -> str:
    return "\n".join([f"## {title}", "", text, "", *(_entry(figure) for figure in figures)])


def _entry(figure: Figure[Any]) -> str:
    facts = [f"- type: {figure.kind}", f"- unit: {figure.unit}"]
    facts.append(f"- labels: {_names(figure.labels) or 'none'}")
    if figure.keys:
        facts.append(f"- read from: {_names(figure.keys)}")
    facts.append(f"- method: {figure.method}")
    return "\n".join([f"### {figure.name}", "", figure.help, "", *facts, ""])


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
