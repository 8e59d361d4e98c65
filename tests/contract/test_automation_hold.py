"""A named person holds a live recovery: what stands still, what goes on being judged, and how a hold ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sluicegate.telemetry import Telemetry
from tests.automation_parts import Parts, quick
from tests.queues import OpenQueue, OpenQueueFunction, wait_until
from tests.recovery import Recovery
from tests.webhooks import served

NAMED = {"actor": "ada", "reason": "looking at it"}


def held(parts: Parts, run: str, for_s: float | None = None) -> None:
    assert parts.store.hold(run, for_s, **NAMED)[0] == "moved"


def test_a_held_run_begins_and_ends_no_step_until_it_is_resumed(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path)) as parts:
            run = parts.open_run()
            await parts.until_step(run, "fix")
            held(parts, run)
            parts.approve(run, "fix")
            looks = parts.look().at_ms
            await parts.until(lambda: parts.look().at_ms > looks + 500, "several looks of the executor")
            assert parts.journal(run, "done", "fix") == []
            record = parts.history(run).run
            assert (record.held, record.held_by) == (True, "ada: looking at it")

            assert parts.store.resume(run, **NAMED) == "moved"
            await parts.until_ended(run, "succeeded")
            phases = [entry.phase for entry in parts.journal(run) if entry.phase in ("held", "resumed")]
            assert phases == ["held", "resumed"]
            assert {"run_held", "run_resumed"} <= set(parts.reasons())

    asyncio.run(scenario())


def test_a_hold_that_nobody_resumes_is_a_rollback(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path)) as parts:
            run = parts.open_run()
            await parts.until_step(run, "fix")
            held(parts, run, 0.3)
            history = await parts.until_ended(run, "rolled_back")
            assert history.run.rollback_reason == "manual_operator_hold"
            assert parts.state() == ("drain", "rolled_back", "manual_operator_hold")
            assert "hold_expired" in parts.reasons()
            assert "ada: looking at it" in (parts.look().gate.pin_note or "")

    asyncio.run(scenario())


def test_a_hold_lasts_no_longer_than_the_contract_allows(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        parts = Parts(redis_url, quick(tmp_path, timings={"hold_max_s": 2}), controller=False, executor=False)
        async with parts:
            run = parts.open_run()
            for wanted in (None, 3600.0):
                answer, until_ms = parts.store.hold(run, wanted, **NAMED)
                assert answer == "moved"
                assert 0 < until_ms - parts.look().at_ms <= 2000
            assert parts.store.hold("another", None, **NAMED)[0] == "gone"

    asyncio.run(scenario())


def test_an_abort_ends_a_held_run_at_once(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path)) as parts:
            run = parts.open_run()
            await parts.until_step(run, "fix")
            held(parts, run)
            parts.store.order("abort", "ada", "wrong alert")
            await parts.until_ended(run, "rolled_back")
            assert parts.history(run).run.held is False
            assert parts.store.resume(run, **NAMED) == "gone"

    asyncio.run(scenario())


def ticked(queue: OpenQueue) -> Telemetry:
    """Look as the controller does, and keep its lease."""
    return queue.store.tick(queue.store.lead("c1")[1])


# In the functions: what is refused, whoever asks, and what the time of a hold is worth.


@pytest.mark.parametrize(
    ("effect", "fields"),
    [
        ("recover", {}),
        ("snapshot", {}),
        ("drain", {"keep_ms": 0}),
        ("journal", {"phase": "started"}),
        ("journal", {"phase": "done"}),
        ("journal", {"phase": "intent"}),
    ],
)
def test_no_executor_brings_a_held_run_further(
    open_queue: OpenQueueFunction, effect: str, fields: dict[str, Any]
) -> None:
    queue = open_queue()
    run = Recovery(queue)
    assert queue.store.hold("run-1", None, **NAMED)[0] == "moved"
    assert run.step(effect, **fields) == "held"
    assert queue.store.resume("run-1", **NAMED) == "moved"
    assert run.step(effect, **fields) in ("moved", "unchanged")


def test_a_held_run_goes_on_proving_itself_and_may_fail(open_queue: OpenQueueFunction) -> None:
    queue = open_queue()
    run = Recovery(queue)
    run.step("recover")
    queue.store.hold("run-1", None, **NAMED)
    run.green()
    assert queue.store.observe().gate.green is True
    assert run.step("burned_down") == "held"
    assert run.step("reopen") == "held"
    assert run.step("journal", phase="outcome") == "moved"
    assert run.step("rollback", reason="canary_failed") == "moved"


def test_a_ramp_that_is_held_grows_no_further_and_a_breach_ends_it(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"ramp_step_s": 0.05, "limit_grace_s": 0.05})
    run = Recovery(queue)
    run.step("recover")
    run.green()
    run.step("burned_down")
    assert run.step("reopen") == "moved"
    queue.store.hold("run-1", None, **NAMED)
    limit_ms = queue.store.observe().gate.limit_at_ms
    # Far past the step's time and its grace: a hold is no breach.
    wait_until(lambda: ticked(queue).at_ms > limit_ms + 300, "the limit's time")
    assert run.step("ramp") == "held"
    assert queue.store.observe().gate.ramp_percent == 10

    epoch, (_, fence) = ticked(queue).gate.epoch, queue.store.lead("c1")
    answer = queue.store.move_gate(
        action="drain", reason="provider_or_queue_age", exit_ok=False, epoch=epoch, fence=fence, figures="{}"
    )

    gate = queue.store.observe().gate
    assert (answer.drain_state, gate.pin, gate.rollback_reason) == ("drain", "rolled_back", "queue_age_not_recovering")


def test_the_time_of_a_hold_counts_for_no_limit(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"canary_timeout_s": 0.4, "limit_grace_s": 0.05})
    run = Recovery(queue)
    run.step("recover")
    before_ms = queue.store.observe().gate.limit_at_ms
    queue.store.hold("run-1", None, **NAMED)
    wait_until(lambda: ticked(queue).at_ms > before_ms + 200, "the limit's time")
    assert queue.store.resume("run-1", **NAMED) == "moved"
    after_ms = ticked(queue).gate.limit_at_ms
    assert after_ms > before_ms + 200
    record = queue.store.run("run-1")
    assert record is not None
    assert record.run.live
    assert abs(record.run.step_held_ms - (after_ms - before_ms)) <= 1
    # From here on time counts again.
    wait_until(lambda: ticked(queue).gate.pin is not None, "the limit")
    assert queue.store.observe().gate.rollback_reason == "canary_failed"


def test_a_resume_that_comes_too_late_finds_the_rollback(open_queue: OpenQueueFunction) -> None:
    queue = open_queue()
    Recovery(queue)
    _, until_ms = queue.store.hold("run-1", 0.01, **NAMED)
    wait_until(lambda: queue.store.observe().at_ms >= until_ms, "the end of the hold")
    assert queue.store.resume("run-1", **NAMED) == "expired"
    assert queue.store.observe().gate.rollback_reason == "manual_operator_hold"
    assert queue.store.resume("run-1", **NAMED) == "gone"


def test_a_run_is_held_and_resumed_over_http(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            Parts(redis_url, quick(tmp_path), controller=False, executor=False) as parts,
            served(parts) as client,
        ):
            run = parts.open_run()
            for bad in ({"for_s": 0}, {"for_s": -1}, {"for_s": "nan"}, {"for_s": 1e12}, {"actor": ""}):
                assert (await client.post(f"/v1/runs/{run}/hold", json=NAMED | bad)).status_code == 422, bad
            answer = await client.post(f"/v1/runs/{run}/hold", json=NAMED | {"for_s": 5})
            assert (answer.status_code, answer.json()["answer"]) == (200, "moved")
            assert (await client.get(f"/v1/runs/{run}")).json()["run"]["held_by"] == "ada: looking at it"
            assert (await client.post(f"/v1/runs/{run}/resume", json=NAMED)).json() == {"answer": "moved"}
            assert (await client.post(f"/v1/runs/{run}/resume", json=NAMED)).status_code == 409
            assert (await client.post("/v1/runs/none/hold", json=NAMED)).status_code == 404

    asyncio.run(scenario())
