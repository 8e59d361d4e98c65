"""Work out every exported figure of a queue anew, from its records alone: no index, no script, plain Redis commands.

It knows nothing of the functions' code. Ages and slack come from the hash of each job, so an index that has lost or
kept an entry shows as a figure that differs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from exporter.catalogue.flow import RUN_REFUSALS, RUN_RESULTS
from exporter.catalogue.gate import DECISION_ROWS
from sluicegate.admission import RefusalReason
from sluicegate.gate import PinReason, RollbackReason
from sluicegate.job import CallKind
from sluicegate.keys import PAIRS
from sluicegate.policy import Thresholds
from sluicegate.run_steps import StepResult, VerbName
from tests.machine.dump import Dump, Fields
from tests.machine.gate import Gate, read_gate

# (name of the sample, values of its labels beside the queue) → value.
Page = dict[tuple[str, ...], float]

_UNFINISHED = ("ready", "delayed", "running")
_BUCKETS = 6
_STATES = {"pending": "ready", "delayed": "delayed", "running": "running", "unknown": "unknown", "blocked": "blocked"}
_GATES = ("admit", "reject_new", "drain", "recovering")


def read_plainly(client: Any) -> Dump:
    """Read every key with the commands that anybody has; the caller sees to it that nothing moves meanwhile."""
    keys: list[str] = client.keys("*")
    pipeline: Any = client.pipeline(transaction=False)
    for key in keys:
        pipeline.type(key)
    kinds: list[str] = pipeline.execute()
    read = [(key, kind) for key, kind in zip(keys, kinds, strict=True) if kind in _READ]
    for key, kind in read:
        _READ[kind](pipeline, key)
    dump = Dump()
    for (key, kind), value in zip(read, pipeline.execute(), strict=True):
        if kind == "hash":
            dump.hashes[key] = value
        elif kind == "zset":
            dump.zsets[key] = dict(value)
        elif kind == "string":
            dump.strings[key] = value
        elif key == PAIRS:
            dump.pairs.update(value)
    return dump


_READ: Mapping[str, Callable[[Any, str], object]] = {
    "hash": lambda pipeline, key: pipeline.hgetall(key),
    "zset": lambda pipeline, key: pipeline.zrange(key, 0, -1, withscores=True),
    "set": lambda pipeline, key: pipeline.smembers(key),
    "string": lambda pipeline, key: pipeline.get(key),
}


class BruteForce:
    """Hold the raw keys of one instant, and give every figure of it."""

    def __init__(self, dump: Dump, now_ms: int) -> None:
        self._dump, self._now = dump, now_ms
        self._gate: Gate = read_gate(dump)
        self._contract: Mapping[str, Any] = json.loads(dump.hashes["queue:settings"]["contract"])
        self._jobs = [job for job in dump.jobs.values() if not job["canary"]]
        self._canaries = [job for job in dump.jobs.values() if job["canary"]]

    def page(self) -> Page:
        """Give every sample that the queue's figures must have, and no other."""
        page: Page = {}
        for part in (self._queue(), self._classes(), self._provider(), self._gate_figures(), self._totals()):
            for name, value in part:
                assert name not in page, f"{name} is there twice"
                if value is not None:
                    page[name] = value
        return page

    def live(self) -> set[str]:
        """Give the ids of the jobs that have not ended."""
        return {
            job["key"] for job in self._dump.jobs.values() if job["state"] not in ("succeeded", "failed", "expired")
        }

    def indexed(self) -> list[str]:
        """Give every id in the containers that a job is in once, however often it is there."""
        zsets = self._dump.zsets
        once = ("queue:fifo:", "queue:delayed", "queue:leases", "queue:unknown", "queue:blocked", "queue:canary")
        return [
            job_id
            for key, members in zsets.items()
            if key in once or key.startswith("queue:fifo:")
            for job_id in members
        ]

    # Jobs.

    def _of(self, job: Fields) -> str:
        """Give the class a job counts under."""
        return job["class"] if job["class"] in self._contract["classes"] else "other"

    def _age(self, job: Fields) -> float:
        return max(0, self._now - int(job["eligible"])) / 1000

    def _slack(self, job: Fields) -> float:
        return (int(job["deadline"]) - self._now) / 1000

    def _doomed(self, job: Fields) -> bool:
        margin = self._contract["timings"]["margin_ms"]
        match job["state"]:
            case "ready":
                return bool(int(job["deadline"]) - self._now < margin)
            case "delayed":
                return bool(int(job["deadline"]) - max(self._now, int(job["ready_at"])) < margin)
            case "running":
                return int(job["deadline"]) < self._now
        return False

    def _inflight(self, jobs: Iterable[Fields]) -> int:
        return sum(job["state"] == "running" and int(job["lease_end"]) > self._now for job in jobs)

    def _ruling(self) -> list[Fields]:
        ready = [job for job in self._jobs if job["state"] == "ready"]
        if self._contract["dispatch"] != "edf":
            return ready
        classes = self._contract["classes"]
        shortest = min(classes, key=lambda name: (classes[name]["deadline_ms"], name))
        return [job for job in ready if job["class"] == shortest]

    def _queue(self) -> Iterator[tuple[tuple[str, ...], float | None]]:
        ready = [job for job in self._jobs if job["state"] == "ready"]
        unfinished = [job for job in self._jobs if job["state"] in _UNFINISHED]
        ages = [self._age(job) for job in self._ruling()]
        slacks = [self._slack(job) for job in unfinished]
        oldest = min((int(job["eligible"]) for job in ready), default=None)
        p95 = percentile(ages, 0.95) or 0.0
        yield ("queue_age_p95_seconds",), p95
        yield ("sluicegate_queue_age_p50_seconds",), percentile(ages, 0.5) or 0.0
        yield ("sluicegate_queue_age_p99_seconds",), percentile(ages, 0.99) or 0.0
        yield ("sluicegate_queue_age_p95_ready_timestamp_seconds",), self._now / 1000 - p95 if ready else None
        yield ("oldest_job_age_seconds",), max(0, self._now - oldest) / 1000 if oldest is not None else 0.0
        yield ("sluicegate_oldest_job_ready_timestamp_seconds",), None if oldest is None else oldest / 1000
        yield ("deadline_slack_p10_seconds",), percentile(slacks, 0.1)
        yield ("sluicegate_deadline_slack_p1_seconds",), percentile(slacks, 0.01)
        yield ("sluicegate_deadline_slack_p50_seconds",), percentile(slacks, 0.5)
        yield ("worker_inflight",), self._inflight(self._dump.jobs.values())
        yield ("sluicegate_doomed_jobs",), sum(map(self._doomed, self._jobs))
        yield ("sluicegate_future_ready_jobs",), 0
        for shown, state in _STATES.items():
            yield ("sluicegate_jobs", shown), sum(job["state"] == state for job in self._jobs)
        yield ("sluicegate_window_completions",), self._completions()
        yield ("sluicegate_predicted_wait_seconds",), self._wait(len(ready))
        yield ("sluicegate_snapshot_timestamp_seconds",), self._now / 1000
        snapshot = self._dump.strings.get("control:snapshot", "0")
        yield ("sluicegate_last_snapshot_timestamp_seconds",), int(snapshot) / 1000
        # No record repeats since when a job is unknown.
        unknown = self._dump.zsets.get("queue:unknown", {}).values()
        yield ("sluicegate_oldest_unknown_timestamp_seconds",), min(unknown) / 1000 if unknown else None
        yield ("sluicegate_age_method_info", "exact"), 1

    def _wait(self, backlog: int) -> float | None:
        done = self._completions()
        if backlog == 0:
            return 0
        if done < self._contract["prediction_min_completions"]:
            return None
        return float(backlog * self._contract["timings"]["provider_window_ms"] / done / 1000)

    def _class_wait(self, name: str, jobs: list[Fields]) -> float | None:
        if not self._contract["backlog_limit"]:
            return self._wait(sum(job["state"] == "ready" for job in self._jobs))
        declared = self._contract["classes"].get(name)
        if declared is None:
            return None
        seen = self._dump.hashes.get("service", {})
        done, ms = (int(seen.get(f"{field}:{name}", 0)) for field in ("jobs", "ms"))
        few = done < self._contract["prediction_min_completions"]
        expected = declared.get("expected_service_ms") or self._contract["expected_service_ms"]
        each = expected if few else ms / done
        waiting = sum(job["state"] in ("ready", "delayed") for job in jobs)
        return float(waiting * each / (self._contract["max_running"] * declared["share"]) / 1000)

    def _classes(self) -> Iterator[tuple[tuple[str, ...], float | None]]:
        for name in (*self._contract["classes"], "other"):
            jobs = [job for job in self._jobs if self._of(job) == name]
            yield from (
                ((f"sluicegate_class_{key[0]}", name, *key[1:]), value) for key, value in self._class(name, jobs)
            )

    def _class(self, name: str, jobs: list[Fields]) -> Iterator[tuple[tuple[str, ...], float | None]]:
        ages = [self._age(job) for job in jobs if job["state"] == "ready"]
        slacks = [self._slack(job) for job in jobs if job["state"] in _UNFINISHED]
        for shown, state in _STATES.items():
            yield ("jobs", shown), sum(job["state"] == state for job in jobs)
        p95 = percentile(ages, 0.95) or 0.0
        yield ("queue_age_p50_seconds",), percentile(ages, 0.5) or 0.0
        yield ("queue_age_p95_seconds",), p95
        yield ("queue_age_p99_seconds",), percentile(ages, 0.99) or 0.0
        yield ("queue_age_p95_ready_timestamp_seconds",), self._now / 1000 - p95 if ages else None
        yield ("oldest_job_age_seconds",), max(ages, default=0.0)
        yield ("oldest_job_ready_timestamp_seconds",), self._now / 1000 - max(ages) if ages else None
        yield ("deadline_slack_p1_seconds",), percentile(slacks, 0.01)
        yield ("deadline_slack_p10_seconds",), percentile(slacks, 0.1)
        yield ("deadline_slack_p50_seconds",), percentile(slacks, 0.5)
        for bound in self._bounds():
            yield ("queue_age_seconds_bucket", repr(bound)), sum(age < bound for age in ages)
        yield ("queue_age_seconds_bucket", "+Inf"), len(ages)
        yield ("doomed_jobs",), sum(map(self._doomed, jobs))
        yield ("inflight",), self._inflight(jobs)
        yield ("predicted_wait_seconds",), self._class_wait(name, jobs)
        declared = self._contract["classes"].get(name)
        yield ("deadline_seconds",), declared["deadline_ms"] / 1000 if declared else None
        yield from self._class_totals(name)

    def _bounds(self) -> list[float]:
        bounds = self._contract["thresholds"]
        recovered, drain = bounds["recovered_age_p95_seconds"], bounds["drain_age_p95_seconds"]
        listed = (recovered / 3, recovered * 2 / 3, recovered, bounds["reject_age_p95_seconds"], drain, 2 * drain)
        return [round(bound, 3) for bound in listed]

    def _class_totals(self, name: str) -> Iterator[tuple[tuple[str, ...], float | None]]:
        counters = self._dump.hashes.get(f"counters:{name}", {})
        yield ("admitted_total",), int(counters.get("admitted", 0))
        for result in ("succeeded", "failed", "expired"):
            yield ("ended_total", result), int(counters.get(result, 0))
        for outcome in ("met", "missed", "expired"):
            yield ("deadline_outcomes_total", outcome), int(counters.get(outcome, 0))
        limits = {f"{limited}_limit" for limited in (name, *self._contract["cost_classes"])}
        for reason in {*(reason.value for reason in RefusalReason), *limits}:
            yield ("refusals_total", reason), int(counters.get(f"refused:{reason}", 0))

    # The windows.

    def _bucket(self, family: str, field: str) -> Iterator[int]:
        newest = self._now * _BUCKETS // self._contract["timings"]["provider_window_ms"]
        for bucket in range(newest - _BUCKETS + 1, newest + 1):
            yield int(self._dump.hashes.get(f"{family}:{bucket}", {}).get(field, 0))

    def _completions(self) -> int:
        return sum(self._bucket("done", "jobs"))

    def _provider(self) -> Iterator[tuple[tuple[str, ...], float | None]]:
        family = f"provider:{self._gate.window or 0}"
        calls, errors, timeouts = (sum(self._bucket(family, field)) for field in ("calls", "5xx", "timeout"))
        yield ("provider_5xx_rate",), errors / calls if calls else None
        yield ("provider_timeout_rate",), timeouts / calls if calls else None
        yield ("sluicegate_provider_window_seconds",), self._contract["timings"]["provider_window_ms"] / 1000
        yield ("sluicegate_provider_window_calls",), calls
        yield ("sluicegate_provider_window_failed_calls",), errors + timeouts

    # The gate.

    def _gate_figures(self) -> Iterator[tuple[tuple[str, ...], float | None]]:
        gate, record = self._gate, self._dump.hashes.get("control:gate", {})
        yield from ((("drain_state", state), float(state == gate.effective)) for state in _GATES)
        reason = record.get("rollback_reason")
        yield from ((("rollback_reason", each), float(each == reason)) for each in RollbackReason)
        pin = gate.pin if gate.readable else "control_data_lost"
        yield from ((("sluicegate_gate_pinned", each), float(each == pin)) for each in PinReason)
        canary_ok = int(record.get("canary_ok", 0) or 0)
        yield ("canary_ok_count",), canary_ok
        yield ("sluicegate_canary_consecutive_successes",), canary_ok
        yield ("sluicegate_canaries_required",), self._contract["canaries_required"]
        yield ("sluicegate_canary_failures",), int(record.get("canary_failed", 0) or 0)
        yield ("sluicegate_canary_jobs",), sum(job["state"] in ("ready", "running") for job in self._canaries)
        silent = abs(self._now - gate.seen_ms) > self._contract["timings"]["controller_silent_ms"]
        admits = gate.effective == "admit" and not silent
        yield ("sluicegate_admission_ratio",), (100 if gate.ramp is None else gate.ramp) / 100 if admits else 0
        yield ("sluicegate_gate_initialised",), 1
        yield ("sluicegate_gate_readable",), float(gate.readable)
        yield ("sluicegate_gate_since_timestamp_seconds",), int(record["since"]) / 1000 if gate.readable else None
        yield ("sluicegate_controller_seen_timestamp_seconds",), gate.seen_ms / 1000
        yield ("sluicegate_duplicate_side_effects_unacknowledged",), max(0, gate.confirmed - gate.acknowledged)
        decision = self._dump.hashes.get("control:decision", {})
        made = (decision.get("action"), decision.get("reason"))
        yield from ((("sluicegate_decision", *row), float(made == row)) for row in DECISION_ROWS)
        for name in Thresholds.__dataclass_fields__:
            yield ("sluicegate_threshold", name), self._contract["thresholds"][name]
        run = self._dump.hashes.get(f"run:{gate.run}", {})
        if run.get("state") in ("running", "rolling_back"):
            step = run["verb"] if run["verb"] in set(VerbName) else "none"
            yield ("sluicegate_run_live", run["runbook"], step), 1
            yield ("sluicegate_run_started_timestamp_seconds", run["runbook"]), int(run["started_at"]) / 1000

    # Totals.

    def _totals(self) -> Iterator[tuple[tuple[str, ...], float | None]]:
        counters = {name: int(value) for name, value in self._dump.hashes.get("counters", {}).items()}
        limits = {f"{name}_limit" for name in (*self._contract["classes"], "other", *self._contract["cost_classes"])}
        yield ("sluicegate_admissions_total", "accepted", "none"), counters.get("admitted", 0)
        yield ("sluicegate_admissions_total", "replayed", "none"), counters.get("replayed", 0)
        for reason in {*(reason.value for reason in RefusalReason), *limits}:
            yield ("sluicegate_admissions_total", "refused", reason), counters.get(f"refused:{reason}", 0)
        for kind in CallKind:
            yield ("sluicegate_provider_calls_total", kind.value), counters.get(f"calls:{kind}", 0)
        for result in RUN_RESULTS:
            yield ("sluicegate_runs_total", result), counters.get(f"runs:{result}", 0)
            yield ("sluicegate_run_seconds_total", result), counters.get(f"run_ms:{result}", 0) / 1000
        for refusal in RUN_REFUSALS:
            yield ("sluicegate_runs_refused_total", refusal), counters.get(f"runs_refused:{refusal}", 0)
        for verb in VerbName:
            yield ("sluicegate_step_seconds_total", verb.value), counters.get(f"step_ms:{verb}", 0) / 1000
            for ended in StepResult:
                yield ("sluicegate_steps_total", verb.value, ended.value), counters.get(f"steps:{verb}:{ended}", 0)
        for result in ("ok", "failed"):
            yield ("sluicegate_canaries_total", result), counters.get(f"canaries_{result}", 0)
        for name, counter in _PLAIN_TOTALS.items():
            yield (f"sluicegate_{name}_total",), counters.get(counter, 0)


_PLAIN_TOTALS = {
    "lease_expiries": "lease_expired",
    "requeues": "requeued",
    "retries": "retried",
    "unknown": "unknown",
    "unknown_left": "unknown_left",
    "unknown_reconciled": "unknown_reconciled",
    "blocked": "blocked",
    "stale_writes": "stale_writes",
    "duplicate_side_effects": "duplicates_confirmed",
    "fenced_steps": "fenced_steps",
    "reject_returns": "reject_returns",
}


def percentile(values: list[float], share: float) -> float | None:
    """Give the nearest rank: of n sorted values number ceil(share × n)."""
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else None


def differences(shown: Page, expected: Page) -> dict[tuple[str, ...], tuple[float | None, float | None]]:
    """Give what is shown and what it should be, of each sample where the two differ; JSON keeps 14 digits."""
    return {
        name: (shown.get(name), expected.get(name))
        for name in sorted({*shown, *expected})
        if name not in shown or name not in expected or not math.isclose(shown[name], expected[name], rel_tol=1e-12)
    }
