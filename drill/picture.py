"""Say what the picture of a drill shows: which figures, with which bounds, over which states. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from drill.verdict import Evidence
from sluicegate.plot import Moment, Panel, Picture, Strip
from sluicegate.replies import GateLogEntry
from sluicegate.svg import Bound, Line, Span
from sluicegate.telemetry import Telemetry

_RAMP = re.compile(r"ramp (?P<percent>\d+) %")

Figure = Callable[[Telemetry], float | None]


def picture_of(evidence: Evidence, title: str) -> Picture:
    """Turn the evidence of a drill into a picture; time starts with the first sample."""
    samples = evidence.timeline.samples
    start_ms, end_ms = samples[0].at_ms, samples[-1].at_ms
    seconds = _seconds(start_ms)
    return Picture(
        title=title,
        seconds=seconds(end_ms),
        strips=(
            Strip("gate", _states(evidence, seconds, seconds(end_ms))),
            Strip(
                "phase",
                tuple(
                    Span(phase.name, seconds(phase.from_ms), seconds(phase.to_ms or end_ms))
                    for phase in evidence.timeline.phases
                ),
                is_plain=True,
            ),
        ),
        moments=tuple(Moment(mark.text, seconds(mark.at_ms)) for mark in evidence.timeline.marks),
        panels=tuple(filter(_shows_something, (*_panels(evidence, seconds), _answers(evidence, seconds)))),
    )


def _shows_something(panel: Panel) -> bool:
    """Tell whether a panel has any value: one without would look like a figure that stayed at 0."""
    return any(value is not None for line in panel.lines for _, value in line.points)


def _seconds(start_ms: int) -> Callable[[int], float]:
    return lambda at_ms: (at_ms - start_ms) / 1000


def _states(evidence: Evidence, seconds: Callable[[int], float], end_s: float) -> tuple[Span, ...]:
    """Give the stretches of the gate's states by its own log; the steps of a ramp are stretches of their own."""
    spans = []
    label, since_s = "admit", 0.0
    for entry in evidence.gate_log:
        after = _label(entry)
        if after != label:
            at_s = max(0.0, seconds(entry.at_ms))
            spans.append(Span(label, since_s, at_s))
            label, since_s = after, at_s
    return (*spans, Span(label, since_s, end_s))


def _label(entry: GateLogEntry) -> str:
    ramp = _RAMP.fullmatch(entry.note)
    return f"{entry.to_state} {ramp['percent']} %" if ramp else entry.to_state


def _panels(evidence: Evidence, seconds: Callable[[int], float]) -> tuple[Panel, ...]:
    bounds = evidence.timeline.thresholds

    def line(label: str, figure: Figure) -> Line:
        points = ((seconds(sample.at_ms), figure(sample)) for sample in evidence.timeline.samples)
        return Line(label, tuple((at_s, None if value is None else round(value, 3)) for at_s, value in points))

    return (
        Panel(
            "queue_age_p95_seconds and oldest_job_age_seconds",
            (
                line("p95", lambda one: one.queue_age_p95_seconds),
                line("oldest", lambda one: one.oldest_job_age_seconds),
            ),
            (
                Bound(f"drain {bounds.drain_age_p95_seconds:g} s", bounds.drain_age_p95_seconds),
                Bound(f"reject_new {bounds.reject_age_p95_seconds:g} s", bounds.reject_age_p95_seconds),
                Bound(f"recovered {bounds.recovered_age_p95_seconds:g} s", bounds.recovered_age_p95_seconds),
            ),
            at_least=bounds.drain_age_p95_seconds * 1.2,
        ),
        Panel(
            "deadline_slack_p10_seconds",
            (line("slack", lambda one: one.deadline_slack_p10_seconds),),
            (
                Bound(f"recovered {bounds.recovered_slack_p10_seconds:g} s", bounds.recovered_slack_p10_seconds),
                Bound(f"reject_new {bounds.reject_slack_p10_seconds:g} s", bounds.reject_slack_p10_seconds),
            ),
            at_least=bounds.recovered_slack_p10_seconds * 2,
            # When the short deadlines are done, only those far away are left: nothing at risk, and off the scale.
            at_most=bounds.recovered_slack_p10_seconds * 5,
        ),
        Panel(
            "provider_5xx_rate and provider_timeout_rate",
            (
                line("5xx", lambda one: one.provider.rate_5xx),
                line("timeouts", lambda one: one.provider.rate_timeout),
            ),
            (
                Bound(f"drain, timeouts {bounds.drain_provider_timeout_rate:g}", bounds.drain_provider_timeout_rate),
                Bound(f"drain, 5xx {bounds.drain_provider_5xx_rate:g}", bounds.drain_provider_5xx_rate),
            ),
            at_least=2 * bounds.drain_provider_timeout_rate,
        ),
        Panel(
            "jobs by state",
            (
                line("pending", lambda one: one.ready),
                line("in flight", lambda one: one.worker_inflight),
                line("delayed", lambda one: one.delayed),
                line("unknown", lambda one: one.unknown),
                line("blocked", lambda one: one.blocked),
            ),
            at_least=10,
        ),
    )


def _answers(evidence: Evidence, seconds: Callable[[int], float]) -> Panel:
    """Count accepted and refused submissions in every second."""
    accepted: Counter[int] = Counter()
    refused: Counter[int] = Counter()
    for one in evidence.submissions:
        (accepted if one.decision.accepted else refused)[int(seconds(one.at_ms))] += 1
    last = max((*accepted, *refused), default=-1)
    # The last second of a steady load is cut short by its end; a queue of its own comes in bursts, the last one whole.
    whole = range(last if evidence.jobs_of_its_own is None else last + 1)
    return Panel(
        "submissions a second",
        (
            Line("accepted", tuple((second + 0.5, float(accepted[second])) for second in whole)),
            Line("refused", tuple((second + 0.5, float(refused[second])) for second in whole)),
        ),
        at_least=10,
    )
