"""Say what the picture of an incident shows: strips of gate, steps and alerts, the figures with their bounds. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from automation.incident.gathering import AlertSpan, Incident, Points
from sluicegate import telemetry as names
from sluicegate.gate import DrainState
from sluicegate.plot import Moment, Panel, Picture, Strip
from sluicegate.run_journal import Phase
from sluicegate.svg import Bound, Line, Span

_MOST_ALERTS = 8
Seconds = Callable[[int], float]
# Title, figures, and each bound's name with its threshold.
_PANELS: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]], ...] = (
    (
        "age of the ready jobs, s",
        (names.QUEUE_AGE_P95_SECONDS, names.OLDEST_JOB_AGE_SECONDS),
        (
            ("drain", "drain_age_p95_seconds"),
            ("reject", "reject_age_p95_seconds"),
            ("recovered", "recovered_age_p95_seconds"),
        ),
    ),
    (
        "slack p10 of the unfinished, s",
        (names.DEADLINE_SLACK_P10_SECONDS,),
        (("reject", "reject_slack_p10_seconds"), ("recovered", "recovered_slack_p10_seconds")),
    ),
    (
        "provider: 5xx and timeouts, share of calls",
        (names.PROVIDER_5XX_RATE, names.PROVIDER_TIMEOUT_RATE),
        (("5xx", "drain_provider_5xx_rate"), ("timeouts", "drain_provider_timeout_rate")),
    ),
    ("jobs under a lease", (names.WORKER_INFLIGHT,), ()),
)


def picture_of(incident: Incident, title: str) -> Picture:
    """Turn an incident into a picture; time starts at its left edge."""

    def seconds(at_ms: int) -> float:
        return max(0.0, (min(at_ms, incident.to_ms) - incident.from_ms) / 1000)

    whole_s = seconds(incident.to_ms)
    strips = [Strip("gate", tuple(_states(incident, seconds, whole_s)))]
    steps = tuple(_steps(incident, seconds, whole_s))
    if steps:
        strips.append(Strip("steps", steps, is_plain=True))
    strips += _alerts(incident.recorded.alerts, seconds)
    figures = incident.recorded.figures or _figures_of_moves(incident)
    return Picture(
        title=title,
        seconds=whole_s,
        strips=tuple(strips),
        moments=tuple(_moments(incident, seconds)),
        panels=tuple(_panels(figures, incident.thresholds, seconds)),
        left=118,
    )


def _states(incident: Incident, seconds: Seconds, whole_s: float) -> Iterator[Span]:
    moves = incident.moves
    state, since_s = moves[0].from_state if moves else DrainState.ADMIT.value, 0.0
    for move in moves:
        if move.to_state != state:
            yield Span(state, since_s, seconds(move.at_ms))
            state, since_s = move.to_state, seconds(move.at_ms)
    yield Span(state, since_s, whole_s)


def _steps(incident: Incident, seconds: Seconds, whole_s: float) -> Iterator[Span]:
    started = [entry for entry in incident.history.journal if entry.phase == Phase.STARTED]
    run = incident.history.run
    ends = [*(entry.at_ms for entry in started[1:]), run.ended_at_ms or incident.to_ms]
    # A run that was just opened has begun no step.
    for entry, end_ms in zip(started, ends, strict=False):
        yield Span(entry.verb, seconds(entry.at_ms), min(whole_s, seconds(end_ms)))


def _alerts(spans: tuple[AlertSpan, ...], seconds: Seconds) -> Iterator[Strip]:
    by_name: dict[str, list[Span]] = {}
    for span in spans:
        by_name.setdefault(span.name, []).append(Span("", seconds(span.from_ms), seconds(span.to_ms), "#c2410c"))
    for name in sorted(by_name)[:_MOST_ALERTS]:
        yield Strip(name.removeprefix("Sluicegate")[:20], tuple(by_name[name]), height=10)


def _moments(incident: Incident, seconds: Seconds) -> Iterator[Moment]:
    for at_ms, actor, what in incident.persons[:9]:
        yield Moment(f"{actor}: {what}"[:110], seconds(at_ms))


def _figures_of_moves(incident: Incident) -> Mapping[str, Points]:
    """Take what the gate's log kept of the figures, where no Prometheus has more."""
    found: dict[str, list[tuple[int, float | None]]] = {}
    for move in incident.moves:
        for name, value in move.seen.items():
            found.setdefault(name, []).append((move.at_ms, value))
    return {name: tuple(points) for name, points in found.items()}


def _panels(figures: Mapping[str, Points], thresholds: Mapping[str, float], seconds: Seconds) -> Iterator[Panel]:
    for title, wanted, bounds in _PANELS:
        lines = tuple(
            Line(name, tuple((seconds(at_ms), value) for at_ms, value in figures[name]))
            for name in wanted
            if any(value is not None for _, value in figures.get(name, ()))
        )
        if lines:
            named = tuple(
                Bound(f"{label} {thresholds[name]:g}", thresholds[name]) for label, name in bounds if name in thresholds
            )
            yield Panel(title, lines, named, at_least=max((bound.value * 1.2 for bound in named), default=1.0))
