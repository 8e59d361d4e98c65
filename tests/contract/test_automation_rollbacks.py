"""Every way a run can fail ends drain/closed, pinned, with one of the four reasons, and nothing reopens after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.automation_parts import ON_BOTH, Parts, quick

pytestmark = ON_BOTH


async def to_step(parts: Parts, verb: str) -> str:
    """Open a run, pass its fix, and wait until it is in a step."""
    run = parts.open_run()
    if verb not in ("freeze", "snapshot", "drain", "fix"):
        await parts.until_step(run, "fix")
        parts.approve(run, "fix")
    await parts.until_step(run, verb)
    return run


async def ends_rolled_back(parts: Parts, run: str, reason: str) -> None:
    history = await parts.until_ended(run, "rolled_back")
    assert history.run.rollback_reason == reason
    assert parts.state() == ("drain", "rolled_back", reason)


def test_a_provider_that_is_merely_slow_passes_no_canary(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path)) as parts:
            parts.provider.latency_s = 0.6  # every answer is 200; lint-fix has 12 s ÷ 30
            run = await to_step(parts, "canary")
            await ends_rolled_back(parts, run, "canary_failed")
            said = [entry.text.rsplit(":", 2)[1:] for entry in parts.journal(run, "canary")]
            assert sum("slow" in text[-1] for text in said) == 3

    asyncio.run(scenario())


def test_three_failed_canaries_end_it(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path)) as parts:
            parts.provider.status = 503
            run = await to_step(parts, "canary")
            await ends_rolled_back(parts, run, "canary_failed")
            assert len(parts.journal(run, "canary")) == 3
            assert "canary_failures is 3" in parts.journal(run, "failed")[0].text

    asyncio.run(scenario())


def test_canaries_that_nobody_runs_end_it_in_their_time(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path, timings={"canary_timeout_s": 1}), workers=0) as parts:
            run = await to_step(parts, "canary")
            await ends_rolled_back(parts, run, "canary_failed")
            assert "elapsed_seconds" in parts.journal(run, "failed")[0].text

    asyncio.run(scenario())


def test_a_rollback_says_when_another_contract_was_in_force(redis_url: str, tmp_path: Path) -> None:
    """The functions know no class that this service would send a canary of."""
    settings = quick(tmp_path, timings={"canary_timeout_s": 1})
    other = quick(tmp_path, timings={"canary_timeout_s": 1}, classes={"other-work": {"deadline_s": 12, "canary": {}}})

    async def scenario() -> None:
        async with Parts(redis_url, settings) as parts:
            applied = other.contract
            assert parts.store.apply_settings(applied.for_redis(), applied.digest(), "ada", "a test") == "moved"
            run = await to_step(parts, "canary")
            await ends_rolled_back(parts, run, "canary_failed")
            said = parts.journal(run, "failed")[0].text
            assert f"in force is contract {applied.digest()}" in said
            assert "restart it with the applied one" in said

    asyncio.run(scenario())


def test_a_backlog_that_does_not_fall_ends_it(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        # Without a controller the step's own gate has to see it.
        settings = quick(tmp_path, timings={"burn_down_max_s": 5, "call_timeout_max_s": 5}, retry_budget=50)
        async with Parts(redis_url, settings, controller=False) as parts:
            parts.submit(20)
            run = await to_step(parts, "canary")
            await parts.until(lambda: parts.look().gate.canary_ok_count >= 2, "two canaries")
            parts.provider.answers.clear()  # the backlog's calls hang, and so may the last canary
            await asyncio.sleep(0)
            parts.provider.answers.set()
            await parts.until(lambda: parts.look().gate.green, "green")
            parts.provider.answers.clear()
            await ends_rolled_back(parts, run, "queue_age_not_recovering")
            assert "burn_down_window_1" in parts.journal(run, "failed")[0].text

    asyncio.run(scenario())


def test_a_gate_that_does_not_pass_in_its_time_ends_it(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        thresholds = {"recovered_slack_p10_seconds": 100}
        timings = {"backoff_first_s": 20, "backoff_max_s": 20}
        async with Parts(redis_url, quick(tmp_path, thresholds=thresholds, timings=timings)) as parts:
            parts.provider.status = 503
            parts.submit(1, "test-patch")
            await parts.until(lambda: parts.look().delayed == 1, "a job that waits for its retry longer than the run")
            parts.provider.status = 200
            run = await to_step(parts, "reopen")
            await ends_rolled_back(parts, run, "queue_age_not_recovering")
            assert "deadline_slack_p10_seconds fail" in parts.journal(run, "failed", "reopen")[0].text

    asyncio.run(scenario())


def test_a_breach_in_the_ramp_is_the_controllers_rollback(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path, timings={"ramp_step_s": 10})) as parts:
            run = await to_step(parts, "reopen")
            await parts.until(lambda: parts.look().gate.drain_state == "admit", "the ramp")
            parts.provider.status = 503
            assert "" in parts.submit(20), "the ramp admits its share"
            await ends_rolled_back(parts, run, "queue_age_not_recovering")
            assert parts.journal(run, "rolled_back")[0].actor == "controller"
            assert ("admit", "drain", "provider_or_queue_age") in parts.moves()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("verb", "reason"),
    [
        pytest.param("canary", "canary_failed", id="canary", marks=pytest.mark.slow),
        pytest.param("reopen", "queue_age_not_recovering", id="ramp"),
    ],
)
def test_a_dead_executor_leaves_no_limit_open_and_a_later_one_ends_the_run(
    verb: str, reason: str, redis_url: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        workers = 0 if verb == "canary" else 1
        timings = {"canary_timeout_s": 1.5, "ramp_step_s": 1, "limit_grace_s": 0.5}
        async with Parts(redis_url, quick(tmp_path, timings=timings), workers=workers) as parts:
            run = await to_step(parts, verb)
            if verb == "reopen":
                await parts.until(lambda: parts.look().gate.drain_state == "admit", "the ramp")
            await parts.executor.stop()

            await parts.until(lambda: parts.look().gate.drain_state == "drain", "the controller's rollback")
            assert parts.reasons()[-1] == "limit_overdue"
            assert parts.history(run).run.state == "rolling_back"

            await parts.executor.start()
            await ends_rolled_back(parts, run, reason)

    asyncio.run(scenario())


ENDINGS: dict[str, Callable[[Parts], object]] = {
    "abort": lambda parts: parts.store.order("abort", "ada", "wrong alert"),
    "hold": lambda parts: parts.store.order("hold", "ada", "let me look"),
    "hand edit": lambda parts: parts.client.set("drain_state", "drain"),
    "kill switch": lambda parts: parts.store.kill_switch(on=True, actor="ada", reason="maintenance"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_whoever_ends_a_recovery_by_hand_ends_it_closed_and_pinned(ending: str, redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts:
            run = await to_step(parts, "canary")
            assert parts.look().gate.drain_state == "recovering"
            ENDINGS[ending](parts)
            assert parts.look().gate.drain_state == "drain", "at once, before any tick or look"
            await ends_rolled_back(parts, run, "manual_operator_hold")

    asyncio.run(scenario())


def test_a_persons_run_is_not_bound_by_a_kill_switch_that_stood_before(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts:
            parts.store.kill_switch(on=True, actor="ada", reason="maintenance")
            run = await to_step(parts, "fix")
            assert parts.history(run).run.state == "running"

    asyncio.run(scenario())


def test_a_fix_that_nobody_makes_ends_it_in_its_time(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path, timings={"fix_timeout_s": 1}), workers=0) as parts:
            run = await to_step(parts, "fix")
            await ends_rolled_back(parts, run, "manual_operator_hold")

    asyncio.run(scenario())


def test_a_snapshot_that_cannot_be_written_ends_it_and_says_why(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "taken").write_text("a file, not a folder", encoding="utf-8")
        settings = quick(tmp_path, automation={"snapshot_dir": str(tmp_path / "taken" / "snapshots")})
        async with Parts(redis_url, settings, workers=0) as parts:
            run = await to_step(parts, "snapshot")
            await ends_rolled_back(parts, run, "manual_operator_hold")
            assert "cannot be written: Not a directory" in parts.journal(run, "failed", "snapshot")[0].text

    asyncio.run(scenario())


def test_a_confirmed_duplicate_in_the_ramp_supersedes_the_run_and_opens_the_audit(
    redis_url: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path, timings={"ramp_step_s": 10})) as parts:
            run = await to_step(parts, "reopen")
            await parts.until(lambda: parts.look().gate.drain_state == "admit", "the ramp")
            parts.store.confirm_duplicate("k-1", actor="ada", note="two effects at the provider")

            await parts.until_ended(run, "superseded")
            assert parts.state() == ("drain", "rolled_back", "duplicate_side_effect")
            live = parts.look().gate.run
            assert live is not None
            assert live.runbook == "rollback-and-audit"
            audit = live.run_id
            await parts.until(lambda: parts.journal(audit, "paged", "approve"), "the page of the audit")
            assert '"key":"k-1"' in parts.journal(audit, "done", "audit")[0].detail

            parts.approve(audit, "approve")
            assert parts.look().gate.duplicates_unacknowledged == 0, "in the approval's own move"
            # What is confirmed after the word was given is not covered by it.
            parts.store.confirm_duplicate("k-2", actor="ada", note="another one")
            assert parts.look().gate.duplicates_unacknowledged == 1
            await parts.until_ended(audit, "succeeded")
            assert parts.state() == ("drain", "rolled_back", "duplicate_side_effect")

            assert parts.store.order("acknowledge", "ada", "that one, too").answer == "moved"
            await asyncio.sleep(1.0)
            assert parts.state() == ("drain", "rolled_back", "duplicate_side_effect")
            assert parts.look().gate.run is None

    asyncio.run(scenario())
