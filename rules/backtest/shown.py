"""Show a replay: as tables for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rules.backtest.harm import Harm, Incident
from rules.backtest.replay import Firing
from rules.backtest.run import Backtest, Result, results
from rules.promql import number
from sluicegate.tables import table_lines, terminal_width

_NEVER = "not at all"


def instant(at_ms: int) -> str:
    """Write a time in UTC, to the tenth of a second."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 100_000}"


def lasted(ms: int) -> str:
    """Write how long something was, in the unit that suits it."""
    seconds = ms / 1000
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= 2 * unit:
            return f"{number(round(seconds / unit, 1))} {name}"
    return f"{number(round(seconds, 1))} s"


def lead(harm: Harm, incident: Incident, pages: Sequence[Firing]) -> str:
    """Write how long before an incident's first miss the first page about it began."""
    ms = harm.lead_ms(incident, pages)
    if ms is None:
        return "fired already" if harm.fired_already(incident, pages) else _NEVER
    return _before(ms)


def _before(ms: int) -> str:
    return f"{lasted(ms)} before" if ms >= 0 else f"{lasted(-ms)} after"


def backtest_tables(backtest: Backtest) -> Iterator[str]:
    """Tell what was read, what harm was done, what each alert would have done, and then each firing by its time."""
    yield from _read(backtest)
    yield ""
    yield from _harm(backtest)
    yield ""
    yield from _summary(backtest)
    yield ""
    yield from _firings(backtest)


def _read(backtest: Backtest) -> Iterator[str]:
    evaluations = len(backtest.evaluations.since(backtest.from_ms))
    yield (
        f"Queue {backtest.settings.queue}, {instant(backtest.from_ms)} to {instant(backtest.to_ms)} UTC"
        f" ({lasted(backtest.to_ms - backtest.from_ms)}): {evaluations} evaluations,"
        f" {number(backtest.evaluations.interval_ms / 1000)} s apart, replayed from the {backtest.inputs}."
    )
    meant_s = backtest.settings.monitoring.evaluation_interval_s
    if backtest.evaluations.interval_ms != round(meant_s * 1000):
        yield f"The settings mean to evaluate every {number(meant_s)} s: what is shorter than this was not seen."


def _harm(backtest: Backtest) -> Iterator[str]:
    incidents = backtest.harm.incidents
    shut = backtest.harm.shut
    for_ms = sum(ended - begun for begun, ended in shut)
    yield f"Times that the gate left admit: {len(shut)}, {lasted(for_ms)} in all."
    unseen = not_counted(backtest)
    if any(before <= backtest.from_ms and after >= backtest.to_ms for before, after in unseen):
        yield "Whether a deadline was missed is not known: none was counted in this time."
        return
    if unseen:
        yield (
            f"Deadlines were not counted for {lasted(sum(after - before for before, after in unseen))} of it"
            f" (stretches: {len(unseen)}). What was missed in one is seen at its end, if it has one."
        )
    if not incidents:
        yield "No deadline was seen to be missed." if unseen else "No deadline was missed."
        return
    head = ("incident", "first deadline missed", "last", "missed", "classes", "first page before it", "utilization")
    rows = [
        (
            str(place),
            instant(incident.from_ms),
            instant(incident.to_ms),
            str(incident.misses),
            ", ".join(incident.classes),
            lead_in_words(first_page(backtest, incident)),
            lead(backtest.harm, incident, backtest.beside.pages),
        )
        for place, incident in enumerate(incidents, start=1)
    ]
    yield from table_lines(head, rows, terminal_width())


def not_counted(backtest: Backtest) -> tuple[tuple[int, int], ...]:
    """Give the stretches in which no deadline was counted, as far as they lie in the time that is shown."""
    begins = backtest.from_ms
    return tuple((max(before, begins), after) for before, after in backtest.harm.unseen if after > begins)


def lead_in_words(page: tuple[str, int] | None) -> str:
    """Write a first page as how long before the first miss it began, and its alert's name."""
    return _NEVER if page is None else f"{_before(page[1])}: {page[0]}"


def first_page(backtest: Backtest, incident: Incident) -> tuple[str, int] | None:
    """Name the page about deadlines that came first in an incident, and how long before its first miss, in ms."""
    leads = [
        (ms, one.tried.name)
        for one in backtest.alerts
        if one.tried.about_deadlines and one.tried.severity == "page"
        if (ms := backtest.harm.lead_ms(incident, one.pages)) is not None
    ]
    if not leads:
        return None
    ms, name = max(leads, key=lambda found: found[0])
    return name, ms


def _summary(backtest: Backtest) -> Iterator[str]:
    incidents = backtest.harm.incidents
    head = ("alert", "wakes", "fired", "for nothing", *(f"incident {place}" for place in range(1, len(incidents) + 1)))
    rows = [
        (
            one.tried.name,
            one.tried.severity.value,
            str(len(one.pages)),
            str(len(one.in_vain)) if one.tried.about_deadlines else "-",
            *(_lead_of(backtest, one, incident) for incident in incidents),
        )
        for one in results(backtest)
        if one.pages or one.tried.about_deadlines
    ]
    yield from table_lines(head, rows, terminal_width())
    pages = sum(one.false_pages for one in backtest.alerts)
    yield f"False pages: {pages}; of the alert on utilization: {backtest.beside.false_pages}."


def _lead_of(backtest: Backtest, one: Result, incident: Incident) -> str:
    return lead(backtest.harm, incident, one.pages) if one.tried.about_deadlines else "-"


def _firings(backtest: Backtest) -> Iterator[str]:
    rows = [
        (instant(page.from_ms), lasted(page.to_ms - page.from_ms), one.tried.name, _verdict(one, page))
        for page, one in sorted(
            ((page, one) for one in results(backtest) for page in one.pages), key=lambda pair: pair[0].from_ms
        )
    ]
    if rows:
        yield from table_lines(("fired", "for", "alert", "was"), rows, terminal_width())
    else:
        yield "Nothing would have fired."


def _verdict(one: Result, page: Firing) -> str:
    if not one.tried.about_deadlines:
        return "not about deadlines"
    return "for nothing" if page in one.in_vain else "about harm"


def backtest_json(backtest: Backtest) -> str:
    """Give the same as one JSON document; times are Unix seconds, leads are seconds, negative after the first miss."""
    return json.dumps(backtest_body(backtest), indent=2, ensure_ascii=False)


def backtest_body(backtest: Backtest) -> dict[str, object]:
    """Give the document as values."""
    incidents = backtest.harm.incidents
    return {
        "queue": backtest.settings.queue,
        "from": backtest.from_ms / 1000,
        "to": backtest.to_ms / 1000,
        "evaluations": len(backtest.evaluations.since(backtest.from_ms)),
        "interval_s": backtest.evaluations.interval_ms / 1000,
        "inputs": backtest.inputs.value,
        "incidents": [
            {
                "from": one.from_ms / 1000,
                "to": one.to_ms / 1000,
                "misses": one.misses,
                "classes": list(one.classes),
                "first_page": _first_page_body(backtest, one),
            }
            for one in incidents
        ],
        "not_counted": [{"from": begun / 1000, "to": ended / 1000} for begun, ended in not_counted(backtest)],
        "closings": [
            {"state": one.state, "from": one.from_ms / 1000, "to": one.to_ms / 1000} for one in backtest.harm.closings
        ],
        "false_pages": sum(one.false_pages for one in backtest.alerts),
        "alerts": [_result_body(backtest, one, incidents) for one in backtest.alerts],
        "beside": _result_body(backtest, backtest.beside, incidents),
    }


def _first_page_body(backtest: Backtest, incident: Incident) -> dict[str, object] | None:
    first = first_page(backtest, incident)
    return None if first is None else {"alert": first[0], "lead_s": first[1] / 1000}


def _result_body(backtest: Backtest, one: Result, incidents: Sequence[Incident]) -> dict[str, object]:
    tried = one.tried
    leads = [backtest.harm.lead_ms(incident, one.pages) for incident in incidents] if tried.about_deadlines else []
    return {
        "alert": tried.name,
        "severity": tried.severity.value,
        "action": tried.action or None,
        "for_s": tried.for_s,
        "keep_firing_for_s": tried.keep_s,
        "about_deadlines": tried.about_deadlines,
        "false_pages": one.false_pages,
        "leads_s": [None if ms is None else ms / 1000 for ms in leads],
        "pages": [{**_firing_body(page), "for_nothing": page in one.in_vain} for page in one.pages],
        "firings": [
            {"labels": dict(labels), **_firing_body(firing)} for labels, spans in one.by_labels for firing in spans
        ],
    }


def _firing_body(firing: Firing) -> dict[str, object]:
    return {"from": firing.from_ms / 1000, "to": firing.to_ms / 1000}
