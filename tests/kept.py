"""A queue that holds something of every kind a snapshot has to keep, and its file as lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import redis

from sluicegate.job import CallKind, Job, Outcome
from tests.queues import OpenQueue

Line = dict[str, Any]


def fill(queue: OpenQueue, ready: int = 230) -> Mapping[str, Job]:
    """Make ready jobs and one job of each other kind, drain, and give those that were started, by what they are now."""
    for number in range(ready):
        queue.accepted("test-patch", payload=f'{{"n":{number}}}', job_id=f"r{number}")
    final = queue.submit("no-such-class", job_id="f1")
    assert (final.accepted, final.retry_after_s) == (False, None)
    outcomes = {"delayed": Outcome.RETRY, "unknown": Outcome.UNKNOWN, "succeeded": Outcome.SUCCEEDED}
    started = dict(zip([*outcomes, "running", "no-intent"], queue.claim(5).jobs, strict=True))
    for name, job in started.items():
        if name != "no-intent":
            assert queue.store.intent("w1", job.job_id, job.fence) == "go"
        if name in outcomes:
            queue.settle(job, outcomes[name], kind=CallKind.OK, delay_ms=8000)
    blocked = queue.claimed()
    queue.settle(blocked, Outcome.UNKNOWN)
    assert queue.store.reconcile(blocked.job_id, "block", actor="ada", reason="a test", source="person")[0] == "moved"
    assert queue.store.order("drain", "ada", "a test").answer == "moved"
    for number in range(120):
        assert queue.submit(idempotency_key=f"k-closed-{number}").reason == "admission_closed"
    return {**started, "blocked": blocked}


def lines_of(path: Path) -> list[Line]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_lines(path: Path, lines: Iterable[Line]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def jobs_of(path: Path) -> dict[str, Line]:
    """Give each job of a file as it was last read."""
    found: dict[str, Line] = {}
    for line in lines_of(path):
        if line["kind"] == "job":
            found[line["id"]] = line
        elif line["kind"] == "correction":
            found.pop(line["id"], None)
            if line["row"] is not None:
                found[line["id"]] = line["row"]
    return found


def everything(client: redis.Redis) -> dict[str, bytes]:
    """Give every key of a server with its value as the server itself would store it, to compare two instants."""
    with redis.Redis(connection_pool=redis.ConnectionPool.from_url(url_of(client))) as raw:
        return {str(key): bytes(raw.dump(key) or b"") for key in client.scan_iter(count=1000)}


def url_of(client: redis.Redis) -> str:
    settings = client.connection_pool.connection_kwargs
    return f"redis://{settings['host']}:{settings['port']}/{settings.get('db', 0)}"
