"""Draw a replay: the gate, the misses and every alert that fired over time, above age and slack with their bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rules.alert import Severity
from rules.backtest.history import History
from rules.backtest.run import Backtest, Result, results
from rules.backtest.shown import instant, lasted, not_counted
from sluicegate import records
from sluicegate.plot import Panel, Picture, Strip
from sluicegate.records import Record
from sluicegate.svg import ALARM, Bound, Line, Span, text_width

_IN_VAIN, _TICKET, _OTHER = "#8c959f", "#d4a72c", "#6b3fa0"
_PREFIX = "Sluicegate"
# A firing of seconds in a history of days would be thinner than a line.
_THINNEST = 1 / 500


def picture_of(backtest: Backtest, history: History) -> Picture:
    """Turn a replay into a picture; two curves are asked for anew."""
    seconds = (backtest.to_ms - backtest.from_ms) / 1000
    fired = [one for one in results(backtest) if one.pages]
    strips = (
        Strip("gate", tuple(_gate(backtest, seconds))),
        Strip("missed", tuple(_misses(backtest, seconds)), height=12),
        *(Strip(_name(one), tuple(_pages(backtest, one, seconds)), height=12) for one in fired),
    )
    thresholds = backtest.settings.contract.thresholds
    return Picture(
        title=(
            f"Queue {backtest.settings.queue}, {lasted(backtest.to_ms - backtest.from_ms)} from"
            f" {instant(backtest.from_ms)[:-2]} UTC"
        ),
        seconds=seconds,
        strips=strips,
        moments=(),
        panels=(
            _panel(
                backtest,
                history,
                records.QUEUE_AGE,
                (("drain", thresholds.drain_age_p95_seconds), ("reject_new", thresholds.reject_age_p95_seconds)),
                at_most=thresholds.drain_age_p95_seconds * 3,
            ),
            _panel(
                backtest,
                history,
                records.SLACK,
                (("reject_new", thresholds.reject_slack_p10_seconds),),
                at_most=thresholds.recovered_slack_p10_seconds * 5,
            ),
        ),
        left=round(max(text_width(strip.label) for strip in strips)) + 12,
        legend=(("page", ALARM), ("ticket", _TICKET), ("for nothing", _IN_VAIN), ("not about deadlines", _OTHER)),
    )


def _name(one: Result) -> str:
    return one.tried.name.removeprefix(_PREFIX)


def _at(backtest: Backtest, at_ms: int) -> float:
    return (at_ms - backtest.from_ms) / 1000


def _span(backtest: Backtest, seconds: float, from_ms: int, to_ms: int, label: str, colour: str) -> Span:
    begins = _at(backtest, from_ms)
    return Span(label, begins, max(_at(backtest, to_ms), begins + seconds * _THINNEST), colour)


def _gate(backtest: Backtest, seconds: float) -> Iterable[Span]:
    at = 0.0
    for one in backtest.harm.closings:
        begins = max(0.0, _at(backtest, one.from_ms))
        yield from _admits(backtest, at, begins)
        yield Span(one.state, begins, max(_at(backtest, one.to_ms), begins + seconds * _THINNEST))
        at = max(at, _at(backtest, one.to_ms))
    yield from _admits(backtest, at, seconds)


def _admits(backtest: Backtest, from_s: float, to_s: float) -> Iterable[Span]:
    """Show the gate open from one time to another, but for the stretches of which nothing was recorded."""
    at = from_s
    for before, after in not_counted(backtest):
        begins, ends = max(at, _at(backtest, before)), min(to_s, _at(backtest, after))
        if begins < ends:
            if at < begins:
                yield Span("admit", at, begins)
            at = ends
    if at < to_s:
        yield Span("admit", at, to_s)


def _misses(backtest: Backtest, seconds: float) -> Iterable[Span]:
    for one in backtest.harm.incidents:
        yield _span(backtest, seconds, one.from_ms, one.to_ms, f"{one.misses} missed", "#1f2328")


def _pages(backtest: Backtest, one: Result, seconds: float) -> Iterable[Span]:
    about = ALARM if one.tried.severity is Severity.PAGE else _TICKET
    for page in one.pages:
        colour = _IN_VAIN if page in one.in_vain else about if one.tried.about_deadlines else _OTHER
        yield _span(backtest, seconds, page.from_ms, page.to_ms, lasted(page.to_ms - page.from_ms), colour)


def _panel(
    backtest: Backtest, history: History, record: Record, bounds: Sequence[tuple[str, float]], at_most: float
) -> Panel:
    points = tuple((_at(backtest, at), value) for at, value in history.curve(record) if at >= backtest.from_ms)
    return Panel(
        f"{record.metric}, {'highest' if record.operation == 'max' else 'lowest'} of each step",
        (Line(record.metric, points),),
        tuple(Bound(f"{name} {value:g} s", value) for name, value in bounds),
        at_least=max(value for _, value in bounds) * 1.2,
        at_most=at_most,
    )
