"""Shape the rules for whoever evaluates them: Prometheus, its operator on Kubernetes, Mimir, or vmalert."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from rules.generate import RULES_FILE, Group, groups, render_rules
from rules.render import render
from sluicegate.settings import Settings

# Mimir's default limit (ruler_max_rules_per_rule_group).
MIMIR_MOST = 20


class Format(StrEnum):
    """Name the shapes of a rule file."""

    PROMETHEUS = "prometheus"  # a rule file, from 2.42 on
    PROMETHEUSRULE = "prometheusrule"  # the operator's resource on Kubernetes
    MIMIR = "mimir"  # at most 20 rules a group
    VMALERT = "vmalert"  # a vmalert that knows keep_firing_for
    VMALERT_WITHOUT_KEEP = "vmalert-without-keep"  # an older one, which refuses the field


FILES: dict[Format, str] = {
    Format.PROMETHEUS: RULES_FILE,
    Format.PROMETHEUSRULE: "sluicegate.prometheusrule.yml",
    Format.MIMIR: "sluicegate.mimir.yml",
    Format.VMALERT: "sluicegate.vmalert.yml",
    Format.VMALERT_WITHOUT_KEEP: "sluicegate.vmalert-without-keep.yml",
}

# Where an alert sees its records an evaluation later: in Mimir they stand in groups of their own, and vmalert writes
# them to its storage and reads them back.
CHAINED = frozenset({Format.MIMIR, Format.VMALERT, Format.VMALERT_WITHOUT_KEEP})


def render_format(settings: Settings, shape: Format, among: Sequence[Group] | None = None) -> str:
    """Render rule groups, by default all of the settings' queue, in one of the formats."""
    shaped = tuple(_shaped(groups(settings) if among is None else among, shape))
    text = render_rules(settings, shaped)
    if shape is Format.PROMETHEUSRULE:
        return render("prometheusrule.yml.j2", queue=settings.queue, rules=text)
    return text


def _shaped(among: Sequence[Group], shape: Format) -> Iterator[Group]:
    match shape:
        case Format.MIMIR:
            for group in among:
                yield from _split(group)
        case Format.VMALERT_WITHOUT_KEEP:
            for group in among:
                yield replace(group, alerts=tuple(replace(alert, keep_firing_for_s=0) for alert in group.alerts))
        case _:
            yield from among


def _split(group: Group) -> Iterator[Group]:
    """Split a group into small ones: records first, then alerts, each in its order and under a name that stays."""
    for number, start in enumerate(range(0, len(group.records), MIMIR_MOST), start=1):
        yield Group(f"{group.name}-records-{number}", group.records[start : start + MIMIR_MOST])
    for number, start in enumerate(range(0, len(group.alerts), MIMIR_MOST), start=1):
        yield Group(f"{group.name}-{number}", (), group.alerts[start : start + MIMIR_MOST])
