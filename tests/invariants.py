"""Check by brute force what must hold of a queue between any two commands (DESIGN, "Invariants" 1 to 3, 5, 7, 8, 12).

It knows nothing of the functions' code: it reads every record, works out what each container should hold, and compares
that with every container that exists.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import redis

from sluicegate.job import FINAL_STATES, JobState
from sluicegate.keys import Keys

Record = Mapping[str, str]
Containers = dict[str, dict[str, float]]

# What is named like a container and is none.
_NO_CONTAINERS = frozenset({"queue:settings", "queue:wake", "queue:refusals", "queue:pending", "queue:pairs"})
# A field that would hold its first value is left out of a record.
_FIRST_VALUES = dict.fromkeys(("attempt", "retries", "losses", "fence"), "0") | {
    "cost": "-",
    "rev": "1",
    "canary": "",
    "worker": "",
}
# These are scored by the instant of the move, which no record repeats.
_SINCE_THEN = ("queue:unknown", "queue:blocked")
_SINCE = "0"
_FINAL = frozenset(state.value for state in FINAL_STATES)


def full_record(job_id: str, stored: Record) -> Record:
    """Give a record with the fields that are left out."""
    derived = {"key": job_id, "declared": stored.get("class", ""), "eligible": stored.get("admitted_at", "")}
    return {**_FIRST_VALUES, **derived, **stored}


def assert_invariants(client: redis.Redis, keys: Keys | None = None) -> None:
    """Fail with both sides shown where a container and the records disagree; `client` decodes answers."""
    names = keys or Keys()
    jobs = _jobs(client, names)
    expected = _expected_containers(jobs)
    assert _containers(client, names) == expected
    _check_pending_list(client, names, jobs)
    _check_running_sums(expected)
    _check_decisions(client, names, jobs)
    _check_ends(client, names, jobs)
    _check_retries(client, names, jobs)
    _check_gate(client, names)


def _scan(client: redis.Redis, names: Keys, pattern: str) -> list[str]:
    # The braces of a prefix mean nothing in a pattern.
    found: list[str] = list(client.scan_iter(match=names(pattern), count=1000))
    return [key.removeprefix(names.prefix) for key in found]


def _jobs(client: redis.Redis, names: Keys) -> dict[str, Record]:
    return {
        job_id: full_record(job_id, stored) for job_id, stored in _records(client, names).items() if _is_job(stored)
    }


def _is_job(stored: Record) -> bool:
    return stored["state"] != "refused"


def _records(client: redis.Redis, names: Keys) -> dict[str, Record]:
    """Give every record: jobs and refusals."""
    ids = [key.removeprefix("job:") for key in _scan(client, names, "job:*")]
    return {job_id: client.hgetall(names.job(job_id)) for job_id in ids}  # type: ignore[misc]  # redis types both clients at once


def _expected_containers(jobs: Mapping[str, Record]) -> Containers:
    expected: Containers = defaultdict(dict)
    for job_id, job in jobs.items():
        for container, score in _places(job):
            expected[container][job_id] = float(score)
    return dict(expected)


def _places(job: Record) -> list[tuple[str, str]]:
    """Give each container a job belongs in, with its score."""
    job_class, cost, canary = job["class"], job["cost"], job.get("canary", "") != ""
    match JobState(job["state"]):
        case JobState.READY if canary:
            return [("queue:canary", job["eligible"])]
        case JobState.READY:
            return [
                (f"queue:fifo:{job_class}:{cost}", job["eligible"]),
                (f"queue:ready:{job_class}:{cost}", job["deadline"]),
            ]
        case JobState.DELAYED:
            of_cost = [] if cost == "-" else [(f"queue:delayed:cost:{cost}", job["ready_at"])]
            return [("queue:delayed", job["ready_at"]), (f"queue:delayed:{job_class}", job["deadline"]), *of_cost]
        case JobState.RUNNING if canary:
            return [("queue:leases", job["lease_end"]), ("running:canary", job["lease_end"])]
        case JobState.RUNNING:
            of_cost = [] if cost == "-" else [(f"running:cost:{cost}", job["deadline"])]
            return [("queue:leases", job["lease_end"]), (f"running:{job_class}", job["deadline"]), *of_cost]
        case JobState.UNKNOWN | JobState.BLOCKED as state:
            return [(f"queue:{state}", _SINCE), (f"queue:{state}:{job_class}", _SINCE)]
        case _:
            return []


def _containers(client: redis.Redis, names: Keys) -> Containers:
    found: Containers = {}
    for key in [*_scan(client, names, "queue:*"), *_scan(client, names, "running:*")]:
        if key not in _NO_CONTAINERS:
            pairs: Any = client.zrange(names(key), 0, -1, withscores=True)
            members: dict[str, float] = dict(pairs)
            found[key] = dict.fromkeys(members, float(_SINCE)) if key.startswith(_SINCE_THEN) else members
    return found


def _check_pending_list(client: redis.Redis, names: Keys, jobs: Mapping[str, Record]) -> None:
    listed: Any = client.lrange(names("queue:pending"), 0, -1)
    ready = [job_id for job_id, job in jobs.items() if job["state"] == "ready" and not job.get("canary")]
    assert sorted(listed) == sorted(ready), "queue:pending is not the ready jobs, each once"


def _check_running_sums(containers: Containers) -> None:
    leases = len(containers.get("queue:leases", {}))
    of = {key: len(members) for key, members in containers.items() if key.startswith("running:")}
    canaries = of.pop("running:canary", 0)
    assert sum(count for key, count in of.items() if not key.startswith("running:cost:")) + canaries == leases


def _check_decisions(client: redis.Redis, names: Keys, jobs: Mapping[str, Record]) -> None:
    """Each record is a job or a refusal; a refusal has no payload, lapses, and can be found; a job has its payload."""
    payloads = {key.removeprefix("payload:") for key in _scan(client, names, "payload:*")}
    assert payloads == set(jobs)
    found: Any = client.zrange(names("queue:refusals"), 0, -1)
    for job_id, stored in _records(client, names).items():
        if not _is_job(stored):
            assert client.pttl(names.job(job_id)) > 0, f"the refusal of {job_id} never lapses"
            assert job_id in found, f"the refusal of {job_id} is missing from queue:refusals"
    pairs: Any = client.smembers(names("queue:pairs"))
    used = {f"{job['class']}:{job['cost']}" for job in jobs.values() if not job["canary"]}
    assert used <= set(pairs), "a pair of class and cost class is not known"


def _check_ends(client: redis.Redis, names: Keys, jobs: Mapping[str, Record]) -> None:
    """Whatever expired or failed has its line in failed:{date}, once; what has ended, and only that, goes in time."""
    lines: Counter[str] = Counter()
    for key in _scan(client, names, "failed:*"):
        lines.update(json.loads(line)["job_id"] for line in client.lrange(names(key), 0, -1))
    ended = [job_id for job_id, job in jobs.items() if job["state"] in ("expired", "failed") and not job.get("canary")]
    assert lines == Counter(ended)
    for job_id, job in jobs.items():
        has_ttl = client.pttl(names.job(job_id)) > 0
        assert has_ttl == (job["state"] in _FINAL), f"job {job_id} is {job['state']} and its TTL says otherwise"


def _check_retries(client: redis.Redis, names: Keys, jobs: Mapping[str, Record]) -> None:
    text = client.hget(names("queue:settings"), "contract")
    if not isinstance(text, str):
        return
    budget = json.loads(text)["retry_budget"]
    for job_id, job in jobs.items():
        assert int(job["retries"]) <= budget, f"job {job_id} used {job['retries']} retries of {budget}"
        if int(job["retries"]) == budget:
            assert job["state"] in ("blocked", *_FINAL), f"job {job_id} goes on after its last retry"


def _check_gate(client: redis.Redis, names: Keys) -> None:
    """The newest log entry is the move that wrote what stands."""
    stored = client.hget(names("control:gate"), "drain_state")
    if stored is None:
        return
    newest: Any = client.xrevrange(names("control:log"), count=1)
    assert newest, "a gate was written and no move is logged"
    assert newest[0][1]["to"] == stored
