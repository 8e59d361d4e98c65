"""Compare the raw keys with what the model expects, record by record and counter by counter."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from tests.machine.agreement import agree
from tests.machine.clock import Clock
from tests.machine.dump import Dump, Fields
from tests.machine.world import BUCKETS, Decided, Entry, Job, World

Place = TypeVar("Place")

# Counters of the gate and of runs, which move by rules of their own.
_NOT_THE_QUEUES = ("runs:", "run_ms:", "runs_refused:", "steps:", "step_ms:", "fenced_steps", "reject_returns")


def compare(world: World, dump: Dump, clock: Clock) -> None:
    """Fail naming the first thing that differs."""
    _compare_all("job", {job_id: _of_job(job) for job_id, job in world.jobs.items()}, dict(_jobs(world, dump)))
    agree(dump.lists.get("queue:pending", []), world.pending, "queue:pending")
    _compare_all(
        "decision",
        dict(_decisions(world)),
        {key: _decision(key, f) for key, f in dump.family("job:") if not f.get("canary")},
    )
    _compare_all(
        "ledger entry",
        dict(_entries(world)),
        {key: _entry(f) for key, f in dump.jobs.items() if "intent" in f or "confirmed" in f},
    )
    _compare_counters(world, dump)
    _compare_records(world, dump)
    _compare_ends(world, clock)


def _compare_all(what: str, expected: Mapping[str, object], actual: Mapping[str, object]) -> None:
    agree(sorted(actual), sorted(expected), f"the {what}s there are")
    for name, value in expected.items():
        agree(actual[name], value, f"{what} {name}")


def _of_job(job: Job) -> dict[str, str]:
    """Give the fields of a job's record that mean something in its state."""
    fields = {
        "state": job.state,
        "class": job.job_class,
        "declared": job.declared,
        "cost": job.cost,
        "deadline": str(job.deadline),
        "key": job.key,
        "attempt": str(job.attempt),
        "retries": str(job.retries),
        "losses": str(job.losses),
        "fence": str(job.fence),
        "eligible": str(job.eligible),
        "admitted_at": str(job.admitted_at),
        "canary": job.canary,
        "worker": job.worker,
        "payload": job.payload,
    }
    match job.state:
        case "running":
            fields |= {"lease_end": str(job.lease_end), "window": job.window, "epoch": str(job.epoch)}
        case "delayed":
            fields |= {"ready_at": str(job.ready_at)}
        case "unknown" | "blocked":
            fields |= {"cause": job.cause}
        case "succeeded" | "failed" | "expired":
            fields |= {"cause": job.cause, "ended_at": str(job.ended_at)}
    return fields


def _jobs(world: World, dump: Dump) -> Iterator[tuple[str, Fields]]:
    for job_id, fields in dump.jobs.items():
        named = _of_job(world.jobs[job_id]) if job_id in world.jobs else fields
        stored = {**fields, "payload": dump.strings.get(f"payload:{job_id}", "gone")}
        yield job_id, {name: stored.get(name, "") for name in named}


def _decisions(world: World) -> Iterator[tuple[str, Decided]]:
    return (
        (key, Decided(d.job_id, d.fingerprint, d.accepted, d.reason, d.retry_at)) for key, d in world.decisions.items()
    )


def _decision(key: str, fields: Fields) -> Decided:
    retry_at = int(fields.get("retry_at", 0))
    return Decided(key, fields["fp"], fields["state"] != "refused", fields.get("reason", ""), retry_at)


def _entries(world: World) -> Iterator[tuple[str, Entry]]:
    return ((key, Entry(e.intent, e.fence, e.confirmed)) for key, e in world.ledger.items())


def _entry(fields: Fields) -> Entry:
    return Entry(int(fields.get("intent", 0)), int(fields.get("intent_fence", 0)), int(fields.get("confirmed", 0)))


def _compare_counters(world: World, dump: Dump) -> None:
    """No counter counts twice, and none forgets."""
    totals = {
        name: int(value)
        for name, value in dump.hashes.get("counters", {}).items()
        if not name.startswith(_NOT_THE_QUEUES)
    }
    agree(totals, dict(+world.counters), "the counters")
    of_class = {
        (job_class, name): int(value)
        for job_class, counters in dump.family("counters:")
        for name, value in counters.items()
    }
    agree(of_class, dict(+world.class_counters), "the counters by class")
    newest = world.bucket()
    calls = {
        (*_window_and_bucket(name), kind): int(value)
        for name, fields in dump.family("provider:")
        for kind, value in fields.items()
    }
    agree(
        _recent(calls, newest, _bucket_of_calls), _recent(world.calls, newest, _bucket_of_calls), "the provider's calls"
    )
    done = {int(name): int(fields["jobs"]) for name, fields in dump.family("done:")}
    agree(_recent(done, newest, int), _recent(world.done, newest, int), "the completions")
    confirmed = int(dump.hashes.get("control:duplicates", {}).get("confirmed", 0))
    agree(confirmed, world.duplicates, "the confirmed duplicates")


def _bucket_of_calls(place: tuple[str, int, str]) -> int:
    return place[1]


def _window_and_bucket(name: str) -> tuple[str, int]:
    window, bucket = name.split(":")
    return window, int(bucket)


def _recent(values: Mapping[Place, int], newest: int, bucket_of: Callable[[Place], int]) -> dict[Place, int]:
    """Leave out what lies before the window, which may be gone or not."""
    return {place: value for place, value in values.items() if value and bucket_of(place) > newest - BUCKETS}


def _compare_records(world: World, dump: Dump) -> None:
    failures: Counter[tuple[str, str, str, str]] = Counter()
    for key, lines in dump.lists.items():
        if key.startswith("failed:"):
            told = [json.loads(line) for line in lines]
            date = key.removeprefix("failed:")
            failures.update((date, line["job_id"], line["reason"], line["cause"]) for line in told)
    agree(failures, world.failures, "the lines of failed:{date}")
    new = [
        (fields["kind"], fields.get("job", fields.get("key", "")), fields.get("outcome", ""))
        for fields in dump.news("reconcile:log")
    ]
    agree(sorted(new), sorted(world.records), "the new reconcile records")


def _compare_ends(world: World, clock: Clock) -> None:
    """What is open has no TTL; what has ended goes with everything that belongs to it, at its time."""
    expected: dict[str, int] = {}
    for job_id, job in world.jobs.items():
        expected |= {f"job:{job_id}": job.ends_at, f"payload:{job_id}": job.ends_at}
    refused = {key: decided for key, decided in world.decisions.items() if not decided.accepted}
    expected |= {f"job:{key}": decided.ends_at for key, decided in refused.items()}
    families = ("job:", "payload:")
    actual = {key: end for key, end in clock.ends.items() if key.startswith(families)}
    agree(actual, {key: end for key, end in expected.items() if end}, "when what has ended goes")
