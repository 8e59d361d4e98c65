"""What has been kept as long as the contract says goes, also where more comes all the time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.queues import OpenQueue, contract_of, wait_until

KEPT_S = 0.5


def expired(queue: OpenQueue) -> str:
    """Let one job expire, and give its id."""
    job_id = queue.accepted("lint-fix", deadline_s=0.45)
    queue.sweep_until(lambda: queue.state(job_id) == "expired", "the job's expiry")
    return job_id


def listed(queue: OpenQueue) -> list[str]:
    """Give the ids in today's list of failures, oldest first."""
    (key,) = queue.client.keys("failed:*")
    return [json.loads(line)["job_id"] for line in queue.client.lrange(key, 0, -1)]


Keeping = Callable[[float], OpenQueue]


@pytest.fixture
def keeping(redis_url: str) -> Iterator[Keeping]:
    """Return a function that opens a queue whose failures are kept for so long.

    The invariants are not checked at its end: they want a line for every job that is still there.
    """
    with ExitStack() as stack:

        def opened(kept_s: float) -> OpenQueue:
            queue = OpenQueue(redis_url, contract_of(timings={"failed_retention_s": kept_s}))
            stack.callback(queue.close)
            return queue

        yield opened


def test_a_list_of_failures_that_never_rests_keeps_no_line_longer_than_the_contract_says(
    keeping: Keeping,
) -> None:
    queue = keeping(KEPT_S)
    early = [expired(queue), expired(queue), expired(queue)]
    late: list[str] = []

    def gone() -> bool:
        late.append(expired(queue))
        return not set(early) & set(listed(queue))

    wait_until(gone, "the early lines' end")
    assert late[-1] in listed(queue)
    assert len(late) > 1


def test_a_list_of_failures_is_whole_while_its_lines_are_kept(keeping: Keeping) -> None:
    queue = keeping(60)
    ids = [expired(queue) for _ in range(4)]
    assert listed(queue) == ids


def test_a_list_of_failures_that_is_kept_for_days_loses_nothing(keeping: Keeping) -> None:
    queue = keeping(86_400)
    first = expired(queue)
    (key,) = queue.client.keys("failed:*")
    line = json.loads(queue.client.lindex(key, 0))
    queue.client.lset(key, 0, json.dumps(line | {"at_ms": 1}))
    expired(queue)
    assert listed(queue)[0] == first
    queue.client.lset(key, 0, json.dumps(line))


def test_a_line_that_somebody_else_added_holds_up_nothing(keeping: Keeping) -> None:
    queue = keeping(KEPT_S)
    expired(queue)
    (key,) = queue.client.keys("failed:*")
    queue.client.lpush(key, "not a line", "7")
    job_id = expired(queue)
    assert listed(queue)[-1] == job_id


def test_a_list_of_failures_of_another_type_does_not_keep_a_job_from_its_end(keeping: Keeping) -> None:
    queue = keeping(60)
    expired(queue)
    (key,) = queue.client.keys("failed:*")
    queue.client.delete(key)
    queue.client.set(key, "somebody's own")
    job_id = expired(queue)
    assert listed(queue) == [job_id]


def ended_run(queue: OpenQueue, number: int) -> None:
    """Open a run, give it a person's word, and end it."""
    opening = {"runbook": "drain-and-recover", "trigger": "person", "run": f"run-{number}", "actor": "ada"}
    asked = {"reason": "a test", "confirmed": True, "digest": "", "episode": ""}
    assert queue.store.open_run(opening | asked).answer == "moved"
    assert queue.store.order("open_end_run", "ada", "a test").answer == "moved"


def test_a_run_that_has_ended_goes_with_its_journal(redis_url: str) -> None:
    queue = OpenQueue(redis_url, contract_of(timings={"run_retention_s": 0.4}))
    ended_run(queue, 1)
    assert len(queue.client.keys("run:run-1*")) == 2
    assert [run.run_id for run in queue.store.runs()] == ["run-1"]

    wait_until(lambda: not queue.client.keys("run:run-1*"), "the end of what is kept of the run")

    assert queue.store.runs() == ()
    assert queue.store.run("run-1") is None
    queue.close()


def test_an_alert_of_which_nothing_is_heard_any_more_is_forgotten(redis_url: str) -> None:
    queue = OpenQueue(redis_url, contract_of(timings={"episode_retention_s": 0.4}))
    named = {"name": "Some", "runbook": "drain-and-recover", "labels": "{}", "status": "firing", "ends_at": 0}
    queue.store.notify("test", "g", [{**named, "fingerprint": "early", "starts_at": 1}])
    assert queue.client.zcard("episodes:open") == 1

    wait_until(lambda: not queue.client.keys("episode:test:early"), "the end of the alert's record")
    queue.store.notify("test", "g", [{**named, "fingerprint": "late", "starts_at": 1}])

    assert queue.client.zrange("episodes:open", 0, -1) == ["test:late"]
    queue.close()


def test_a_contract_from_before_these_were_settings_keeps_as_long_as_ever(redis_url: str) -> None:
    queue = OpenQueue(redis_url, contract_of())
    body = json.loads(queue.client.hget("queue:settings", "contract"))
    del body["timings"]["run_retention_ms"], body["timings"]["episode_retention_ms"]
    assert queue.store.apply_settings(json.dumps(body), "an older one", "ada", "a test") == "moved"

    ended_run(queue, 1)
    queue.store.notify("test", "g", [{"fingerprint": "f", "status": "resolved", "starts_at": 1, "ends_at": 2}])

    assert queue.client.pttl("run:run-1") > 89 * 86_400_000
    assert queue.client.pttl("episode:test:f") > 6 * 86_400_000
    queue.close()
