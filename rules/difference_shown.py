"""Show what other settings change: in the rules, and over recorded history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from rules.backtest.comparison import Comparison, Effect, PageChange
from rules.backtest.shown import backtest_body, first_page, instant, lasted, lead_in_words
from rules.difference import Difference
from sluicegate.tables import table_lines, terminal_width


def difference_lines(difference: Difference) -> Iterator[str]:
    """Tell which settings differ, which rules, and which pages can come later or earlier."""
    if not difference.settings:
        yield "The settings are the same."
        return
    for change in difference.settings:
        yield f"{change.name}: {change.before or '(not there)'} → {change.after or '(not there)'}"
    yield ""
    yield f"Rules that change: {len(difference.rules)}." if difference.rules else "No rule changes."
    alike: dict[tuple[str, ...], list[str]] = {}
    for rule in difference.rules:
        alike.setdefault(rule.lines, []).append(rule.name)
    for lines, names in alike.items():
        yield ", ".join(names)
        yield from (f"  {line}" for line in lines)
    if difference.lateness:
        yield ""
        head = ("page", "can take, before", "after")
        rows = [(change.name, change.before, change.after) for change in difference.lateness]
        yield from table_lines(head, rows, terminal_width())


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Tell which pages appear, vanish or move over the history, and what that does to leads and false pages."""
    before = comparison.before
    yield (
        f"Over {lasted(before.to_ms - before.from_ms)}, {instant(before.from_ms)} to {instant(before.to_ms)} UTC,"
        f" replayed from the {before.inputs}:"
    )
    if not comparison.changes:
        yield "nothing would have fired otherwise."
    else:
        rows = [(instant(one.at_ms), one.alert, _said(one), _judged(one)) for one in comparison.changes]
        yield from table_lines(("page", "alert", "what becomes of it", "is"), rows, terminal_width())
    for number, incident in enumerate(comparison.incidents, start=1):
        pages = [first_page(each, incident) for each in (before, comparison.after)]
        was, now = (lead_in_words(page) for page in pages)
        same = " (as before)" if was == now else f", before: {was}"
        yield f"Incident {number} ({instant(incident.from_ms)}, {incident.misses} missed): first page {now}{same}"
    was_false, now_false = comparison.false_pages
    yield f"False pages: {was_false} → {now_false}."


def _said(change: PageChange) -> str:
    if change.effect is Effect.APPEARS and change.after is not None:
        return f"appears, for {lasted(change.after.to_ms - change.after.from_ms)}"
    if change.effect is Effect.VANISHES and change.before is not None:
        return f"vanishes; it lasted {lasted(change.before.to_ms - change.before.from_ms)}"
    parts = []
    if change.earlier_ms:
        parts.append(f"begins {lasted(abs(change.earlier_ms))} {'earlier' if change.earlier_ms > 0 else 'later'}")
    if change.longer_ms:
        parts.append(f"ends {lasted(abs(change.longer_ms))} {'later' if change.longer_ms > 0 else 'earlier'}")
    return ", ".join(parts)


def _judged(change: PageChange) -> str:
    if not change.about_deadlines:
        return "not about deadlines"
    return "for nothing" if change.for_nothing else "about harm"


def difference_json(difference: Difference, comparison: Comparison | None) -> str:
    """Give the same as one JSON document; times are Unix seconds."""
    body: dict[str, object] = asdict(difference)
    if comparison is not None:
        body["backtest"] = {
            "before": backtest_body(comparison.before),
            "after": backtest_body(comparison.after),
            "changes": [_change_body(change) for change in comparison.changes],
        }
    return json.dumps(body, indent=2, ensure_ascii=False)


def _change_body(change: PageChange) -> dict[str, object]:
    return {
        "alert": change.alert,
        "effect": change.effect.value,
        "at": change.at_ms / 1000,
        "earlier_s": change.earlier_ms / 1000,
        "longer_s": change.longer_ms / 1000,
        "for_nothing": change.for_nothing,
        "about_deadlines": change.about_deadlines,
    }
