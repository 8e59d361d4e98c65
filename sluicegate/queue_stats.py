"""Show one reading of a queue to a person or a script: the figures that the exporter shows to Prometheus. Pure.

In JSON a figure has its metric's name, without `sluicegate_` where it has that. What has no sample there is null here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sluicegate.damage import AGES, DEADLINES, contract_is_lost, damaged_parts, known, known_jobs, was_measured
from sluicegate.telemetry import OTHER_CLASS, ClassFigures, Part, Telemetry

_STATES = ("ready", "delayed", "running", "unknown", "blocked")
_AGES = ("queue_age_p50_seconds", "queue_age_p95_seconds", "queue_age_p99_seconds", "oldest_job_age_seconds")
_SLACKS = ("deadline_slack_p1_seconds", "deadline_slack_p10_seconds", "deadline_slack_p50_seconds")
_AGE_WORDS, _SLACK_WORDS = ("p50", "p95", "p99", "oldest"), ("p1", "p10", "p50")
_WAIT = (Part.READY, Part.COMPLETIONS)
_NOT_KNOWN = "not known"
_COLUMNS = (*_STATES, "doomed")


def stats_json(telemetry: Telemetry) -> str:
    """Give the figures as one line of JSON."""
    return json.dumps(stats_body(telemetry))


def stats_text(telemetry: Telemetry) -> str:
    """Give the figures as people read them."""
    return "\n".join(stats_lines(telemetry))


def stats_body(telemetry: Telemetry) -> dict[str, Any]:
    """Give the figures of `queue stats --json`; times in seconds, null without a sample."""
    gate = telemetry.gate
    return {
        "queue": telemetry.queue,
        "at_ms": telemetry.at_ms,
        "settings_digest": telemetry.settings_digest,
        "damaged": sorted(damaged_parts(telemetry)),
        **_ages_and_slacks(telemetry, telemetry),
        "provider_5xx_rate": known(telemetry, telemetry.provider.rate_5xx, Part.PROVIDER),
        "provider_timeout_rate": known(telemetry, telemetry.provider.rate_timeout, Part.PROVIDER),
        "provider_window_seconds": known(telemetry, telemetry.provider.seconds),
        "provider_window_calls": known(telemetry, telemetry.provider.calls, Part.PROVIDER),
        "provider_window_failed_calls": known(telemetry, telemetry.provider.failed, Part.PROVIDER),
        "worker_inflight": known(telemetry, telemetry.worker_inflight, Part.RUNNING),
        "predicted_wait_seconds": known(telemetry, telemetry.predicted_wait_seconds, *_WAIT),
        "window_completions": known(telemetry, telemetry.completions, Part.COMPLETIONS),
        "oldest_job_ready_timestamp_seconds": known(telemetry, _instant(telemetry.oldest_ready_at_ms), *AGES),
        "oldest_unknown_timestamp_seconds": known(telemetry, _instant(telemetry.oldest_unknown_at_ms), Part.UNKNOWN),
        "future_ready_jobs": known(telemetry, telemetry.ahead),
        "snapshot_timestamp_seconds": _instant(telemetry.at_ms),
        "last_snapshot_timestamp_seconds": _instant(telemetry.snapshot_at_ms),
        "drain_state": gate.drain_state,
        "gate_since_timestamp_seconds": _instant(gate.since_ms) if gate.readable else None,
        "admission_ratio": gate.admission_ratio,
        "rollback_reason": gate.rollback_reason,
        "gate_pinned": gate.pin,
        "gate_readable": gate.readable,
        "gate_initialised": gate.initialised,
        "controller_seen_timestamp_seconds": _instant(gate.controller_seen_ms),
        "canary_ok_count": gate.canary_ok_count,
        "canary_consecutive_successes": gate.canary_ok_count,
        "canaries_required": known(telemetry, gate.canaries_required),
        "canary_failures": gate.canary_failures,
        "canary_jobs": known(telemetry, telemetry.canaries),
        "decision": {"action": gate.decision, "reason": gate.decision_reason},
        "run_live": {"runbook": gate.run.runbook, "step": gate.run.step} if gate.run else None,
        "duplicate_side_effects_unacknowledged": gate.duplicates_unacknowledged,
        "doomed_jobs": known(telemetry, telemetry.doomed, *DEADLINES),
        "jobs": {**_jobs(telemetry, telemetry), "canaries": known(telemetry, telemetry.canaries)},
        "threshold": dict(telemetry.thresholds),
        "counters": {name: telemetry.counter(name) for name in _counted(telemetry, "", telemetry.counters)},
        "classes": {name: _class_body(telemetry, name, figures) for name, figures in telemetry.classes.items()},
    }


def stats_lines(telemetry: Telemetry) -> Iterator[str]:
    """Give the same for people: what decides first, then a row a class."""
    body = stats_body(telemetry)
    pin = telemetry.gate.pin
    yield f"queue {telemetry.queue}: gate {telemetry.gate.drain_state}{f', pinned: {pin}' if pin else ''}"
    if body["damaged"]:
        yield f"damaged by hand, so not shown: {', '.join(body['damaged'])}"
    if contract_is_lost(telemetry):
        yield "the contract in Redis is lost, so nothing can be counted"
    yield f"age {_NOT_KNOWN if not was_measured(telemetry, *AGES) else _named(body, _AGE_WORDS, _AGES)}"
    yield f"slack {_slack_said(telemetry, body)}"
    yield f"provider {_provider_said(telemetry, body)}"
    wait = _seconds(body["predicted_wait_seconds"], is_known=was_measured(telemetry, *_WAIT))
    yield f"in flight {_count(body['worker_inflight'])}, predicted wait {wait}"
    yield f"{'':<20}" + "".join(f"{name:>9}" for name in _COLUMNS) + f"{'age p95':>11}{'slack p10':>11}"
    has_slacks = was_measured(telemetry, *DEADLINES)
    for name, figures in sorted(body["classes"].items()):
        if name != OTHER_CLASS or any(figures["jobs"].values()):
            yield _row(name, figures, has_slacks=has_slacks)
    yield _row("all", body, has_slacks=has_slacks)


def _slack_said(telemetry: Telemetry, body: Mapping[str, Any]) -> str:
    if not was_measured(telemetry, *DEADLINES):
        return _NOT_KNOWN
    return "no unfinished job" if body["deadline_slack_p10_seconds"] is None else _named(body, _SLACK_WORDS, _SLACKS)


def _provider_said(telemetry: Telemetry, body: Mapping[str, Any]) -> str:
    if not was_measured(telemetry, Part.PROVIDER):
        return _NOT_KNOWN
    return (
        f"{_share(body['provider_5xx_rate'])} 5xx, {_share(body['provider_timeout_rate'])} timeouts of "
        f"{_count(body['provider_window_calls'])} calls in {telemetry.provider.seconds:g} s"
    )


def _class_body(telemetry: Telemetry, name: str, figures: ClassFigures) -> dict[str, Any]:
    wait = known(telemetry, figures.predicted_wait_seconds, *_WAIT, Part.DELAYED, Part.DEADLINES)
    jobs = _jobs(telemetry, figures)
    return {
        **_ages_and_slacks(telemetry, figures),
        "jobs": jobs,
        # The counts stand beside the other figures as well, where scripts have always found them.
        **jobs,
        "inflight": known(telemetry, figures.inflight, Part.RUNNING, Part.DEADLINES),
        "predicted_wait_seconds": wait,
        "oldest_job_ready_timestamp_seconds": known(telemetry, _instant(figures.oldest_ready_at_ms), *AGES),
        "deadline_seconds": figures.deadline_seconds,
        "doomed_jobs": known(telemetry, figures.doomed, *DEADLINES),
        "counters": {
            counted: telemetry.counter(counted, name)
            for counted in _counted(telemetry, name, telemetry.class_counters.get(name, {}))
        },
    }


def _ages_and_slacks(telemetry: Telemetry, figures: Telemetry | ClassFigures) -> dict[str, float | None]:
    return {
        **{name: known(telemetry, getattr(figures, name), *AGES) for name in _AGES},
        **{name: known(telemetry, getattr(figures, name), *DEADLINES) for name in _SLACKS},
    }


def _instant(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _jobs(telemetry: Telemetry, figures: Telemetry | ClassFigures) -> dict[str, float | None]:
    counts: dict[str, float | None] = dict(zip(_STATES, known_jobs(telemetry, figures).values(), strict=True))
    return {**counts, "doomed": known(telemetry, figures.doomed, *DEADLINES)}


def _counted(telemetry: Telemetry, of: str, counters: Mapping[str, int]) -> list[str]:
    """Name the totals there are, with those that can't be read."""
    return sorted({*counters, *(name for job_class, name in telemetry.broken_counters if job_class == of)})


def _row(name: str, figures: Mapping[str, Any], *, has_slacks: bool) -> str:
    counts = "".join(f"{_count(figures['jobs'][column]):>9}" for column in _COLUMNS)
    # An age there is always, where it is known.
    age = _seconds(figures["queue_age_p95_seconds"], is_known=False)
    slack = _seconds(figures["deadline_slack_p10_seconds"], is_known=has_slacks)
    return f"{name:<20}{counts}{age:>11}{slack:>11}"


def _named(body: Mapping[str, Any], words: tuple[str, ...], names: tuple[str, ...]) -> str:
    return ", ".join(f"{word} {_seconds(body[name])}" for word, name in zip(words, names, strict=True))


def _seconds(value: float | None, *, is_known: bool = True) -> str:
    """Write seconds; what is not there is none only where that is known."""
    return ("none" if is_known else "?") if value is None else f"{value:.1f} s"


def _share(value: float | None) -> str:
    return "no" if value is None else f"{value:.1%}"


def _count(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"
