"""Parse one reading of a queue, as `observe` and `tick` answer it, into figures (`_observe.lua` has the shape)."""

from __future__ import annotations

from collections.abc import Mapping

from sluicegate.replies import Body, rows
from sluicegate.telemetry import ClassFigures, GateView, Part, ProviderWindow, RunView, Telemetry

Counters = dict[str, int]


def telemetry(body: Body, queue: str) -> Telemetry:
    """Parse one reading; without stored settings only the gate says something."""
    window = ProviderWindow(
        seconds=body.get("window_ms", 0) / 1000,
        calls=int(body.get("calls", 0)),
        status_5xx=int(body.get("errors", 0)),
        timeouts=int(body.get("timeouts", 0)),
    )
    at_ms = int(body["at"])
    classes: Mapping[str, Body] = body.get("classes") or {}
    p50, p95, p99, oldest_s, oldest_at = _ages(body, at_ms)
    slack_p1, slack_p10, slack_p50 = _slacks(body)
    oldest_unknown = body.get("oldest_unknown_at")
    counters, class_counters, broken = _all_counters(body, classes)
    return Telemetry(
        queue=queue,
        at_ms=at_ms,
        queue_age_p50_seconds=p50,
        queue_age_p95_seconds=p95,
        queue_age_p99_seconds=p99,
        oldest_job_age_seconds=oldest_s,
        oldest_ready_at_ms=oldest_at,
        deadline_slack_p1_seconds=slack_p1,
        deadline_slack_p10_seconds=slack_p10,
        deadline_slack_p50_seconds=slack_p50,
        provider=window,
        worker_inflight=int(body.get("inflight", 0)),
        gate=_gate(body["gate"], int(body.get("canaries_required", 0))),
        ready=int(body.get("ready", 0)),
        delayed=int(body.get("delayed", 0)),
        running=int(body.get("leases", 0)) - int(body.get("running_canaries", 0)),
        unknown=int(body.get("unknown", 0)),
        blocked=int(body.get("blocked", 0)),
        canaries=int(body.get("canaries", 0)) + int(body.get("running_canaries", 0)),
        doomed=int(body.get("doomed", 0)),
        completions=int(body.get("completions", 0)),
        predicted_wait_seconds=_seconds(body.get("predicted_wait_ms")),
        snapshot_at_ms=int(body.get("snapshot_at", 0)),
        settings_digest=body.get("digest", ""),
        counters=counters,
        classes={name: _class_figures(classes[name], at_ms) for name in sorted(classes)},
        class_counters=class_counters,
        thresholds={name: float(value) for name, value in (body.get("thresholds") or {}).items()},
        kill_switch=str(body.get("kill", "")),
        oldest_unknown_at_ms=int(oldest_unknown) if oldest_unknown is not None else None,
        age_bounds_seconds=tuple(bound / 1000 for bound in rows(body, "age_bounds")),
        ahead=int(body.get("ahead", 0)),
        cost_classes=tuple(sorted(rows(body, "cost_classes"))),
        damaged=frozenset(Part(name) for name in body.get("damaged") or ()),
        broken_counters=broken,
    )


def _ages(body: Body, at_ms: int) -> tuple[float, float, float, float, int | None]:
    """Take the age p50, p95, p99 and of the oldest, in seconds, and since when the oldest is ready; 0 when empty."""
    p50, p95, p99 = (ms / 1000 for ms in body.get("ages_ms") or (0, 0, 0))
    oldest = body.get("oldest_at")
    if oldest is None:
        return p50, p95, p99, 0.0, None
    return p50, p95, p99, max(0, at_ms - oldest) / 1000, int(oldest)


def _slacks(body: Body) -> tuple[float | None, float | None, float | None]:
    """Take the slack p1, p10 and p50 in seconds; None without an unfinished job."""
    p1, p10, p50 = body.get("slacks_ms") or (None, None, None)
    return _seconds(p1), _seconds(p10), _seconds(p50)


def _all_counters(
    body: Body, classes: Mapping[str, Body]
) -> tuple[Counters, dict[str, Counters], frozenset[tuple[str, str]]]:
    """Take the totals, those by class, and the names of those that somebody wrote over: they have no value."""
    stored: dict[str, Mapping[str, str]] = {"": body.get("counters") or {}}
    stored |= {name: figures.get("counters") or {} for name, figures in classes.items()}
    counted = {
        of: {name: int(value) for name, value in totals.items() if _is_total(value)} for of, totals in stored.items()
    }
    broken = {(of, name) for of, totals in stored.items() for name, value in totals.items() if not _is_total(value)}
    return counted.pop(""), counted, frozenset(broken)


def _is_total(value: str) -> bool:
    return value.isdecimal() and value.isascii()


def _seconds(ms: float | None) -> float | None:
    return ms / 1000 if ms is not None else None


def _class_figures(body: Body, at_ms: int) -> ClassFigures:
    p50, p95, p99, oldest_s, oldest_at = _ages(body, at_ms)
    slack_p1, slack_p10, slack_p50 = _slacks(body)
    return ClassFigures(
        ready=int(body["ready"]),
        delayed=int(body["delayed"]),
        running=int(body["running"]),
        unknown=int(body["unknown"]),
        blocked=int(body["blocked"]),
        inflight=int(body["inflight"]),
        queue_age_p50_seconds=p50,
        queue_age_p95_seconds=p95,
        queue_age_p99_seconds=p99,
        oldest_job_age_seconds=oldest_s,
        oldest_ready_at_ms=oldest_at,
        deadline_slack_p1_seconds=slack_p1,
        deadline_slack_p10_seconds=slack_p10,
        deadline_slack_p50_seconds=slack_p50,
        doomed=int(body["doomed"]),
        predicted_wait_seconds=_seconds(body.get("predicted_wait_ms")),
        deadline_seconds=_seconds(body.get("deadline_ms")),
        younger=tuple(int(count) for count in rows(body, "younger")),
    )


def _run(body: Body) -> RunView:
    return RunView(body["id"], body["runbook"], body["verb"], body["state"], int(body["started_at"]))


def _gate(body: Body, required: int) -> GateView:
    run = body.get("run")
    return GateView(
        drain_state=body["drain_state"],
        readable=bool(body["readable"]),
        initialised=bool(body["initialised"]),
        epoch=int(body["epoch"]),
        reason=str(body.get("reason", "")),
        actor=str(body.get("actor", "")),
        since_ms=int(body.get("since", 0)),
        rollback_reason=body.get("rollback_reason"),
        pin=body.get("pin"),
        pin_note=str(body.get("pin_note", "")),
        green=bool(body.get("green", False)),
        canary_ok_count=int(body.get("canary_ok", 0)),
        canaries_required=required,
        canary_failures=int(body.get("canary_failed", 0)),
        ramp_percent=int(body["ramp"]) if body.get("ramp") is not None else None,
        admission_ratio=body.get("admitted_percent", 0) / 100,
        controller_seen_ms=int(body.get("seen", 0)),
        duplicates_unacknowledged=int(body.get("duplicates", 0)),
        limit_at_ms=int(body.get("limit_at", 0)),
        run=_run(run) if run else None,
        besides=tuple(_run(one) for one in rows(body, "besides")),
        decision=str(body.get("decision", "")),
        decision_reason=str(body.get("decision_reason", "")),
        raw_drain_state=body.get("raw_drain_state"),
        raw_admission=body.get("raw_admission"),
    )
