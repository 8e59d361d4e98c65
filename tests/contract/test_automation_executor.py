"""A run from its first step to its last, and who carries it out, on real servers and with a real worker."""

from __future__ import annotations

import asyncio
import itertools
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runbooks.plan import plan
from sluicegate.telemetry import EXECUTOR_SEEN_TIMESTAMP_SECONDS
from tests.automation_parts import ON_BOTH, RECOVERY, Parts, quick

STEPS = ["freeze", "snapshot", "drain", "fix", "recover", "canary", "burn_down", "reopen"]


def test_a_whole_run_reopens_and_journals_the_lines_of_the_plan(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path)) as parts:
            assert parts.submit(12) == [""] * 12
            run = parts.open_run()
            assert parts.state() == ("drain", None, None)
            assert parts.submit() == ["admission_closed"]
            await parts.until_step(run, "fix")
            planned = plan(RECOVERY, parts.look(), parts.settings, run_id=run)
            parts.approve(run, "fix")

            history = await parts.until_ended(run, "succeeded")

            started = [(entry.seq, entry.verb, entry.text) for entry in parts.journal(run, "started")]
            assert started == [(line.seq, line.verb, line.text) for line in planned.lines]
            assert [verb for _, verb, _ in started] == STEPS
            ends = [(entry.seq, entry.phase) for entry in history.journal if entry.phase in ("started", "done")]
            # The last step ends with the run itself.
            assert ends == [(seq, phase) for seq in range(1, 9) for phase in ("started", "done")][:-1]
            assert history.journal[-1].text == "succeeded: ramp_end"
            assert parts.moves() == [
                ("drain", "admit", "init"),
                ("admit", "drain", "run_opened"),
                ("drain", "recovering", "run_recover"),
                ("recovering", "admit", "run_reopen"),
            ]
            assert parts.state() == ("admit", None, None)
            assert parts.look().gate.admission_ratio == 1
            assert parts.submit() == [""]
            canaries = [key for key in parts.provider.seen if key.startswith("canary:")]
            assert [key.rsplit(":", 2)[1] for key in canaries] == ["lint-fix", "test-patch", "lint-fix"]

    asyncio.run(scenario())


def test_what_the_snapshot_had_to_leave_out_stands_in_the_journal(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts:
            parts.submit(9, "test-patch")
            spoilt = sorted(parts.store.list_jobs("ready"))[:7]
            for job_id in spoilt:
                parts.client.set(f"payload:{job_id}", b"\xff")
            run = parts.open_run()
            await parts.until_step(run, "drain")

            (done,) = parts.journal(run, "done", "snapshot")
            detail = json.loads(done.detail)
            assert (detail["jobs"], detail["left_out"], detail["left_out_ids"].split()) == (2, 7, spoilt[:5])

    asyncio.run(scenario())


@ON_BOTH
def test_the_drain_expires_what_cannot_make_it_and_keeps_the_rest(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = quick(tmp_path, timings={"drain_keep_slack_s": 20})
        async with Parts(redis_url, settings, workers=0) as parts:
            parts.submit(3, "lint-fix")
            parts.submit(2, "test-patch")
            run = parts.open_run()
            await parts.until_step(run, "fix")

            assert parts.look().unfinished == 2
            assert [entry.text for entry in parts.journal(run, "progress", "drain")] == ["3 jobs expired"]
            lines = [json.loads(line) for line in parts.store.failures(datetime.now(UTC).strftime("%Y-%m-%d"))]
            assert [(line["cause"], line["queue_class"]) for line in lines] == [("drain", "lint-fix")] * 3

    asyncio.run(scenario())


@ON_BOTH
def test_the_drain_waits_for_what_runs_and_the_freeze_for_a_worker_that_has_not_confirmed(
    redis_url: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts:
            parts.submit(1)
            (job,) = parts.store.claim("by-hand", "r1", 1).jobs
            run = parts.open_run()
            await parts.until_step(run, "freeze")
            await asyncio.sleep(0.5)
            assert parts.journal(run, "done", "freeze") == []

            assert parts.store.claim("by-hand", "r2", 0).drain_state == "drain"
            await parts.until_step(run, "drain")
            await asyncio.sleep(0.5)
            assert parts.journal(run, "done", "drain") == []
            assert parts.journal(run, "progress", "drain") == [], (
                "what expires nothing is not journaled again and again"
            )

            settled = {"worker": "by-hand", "id": job.job_id, "fence": str(job.fence), "request": "s1"}
            parts.store.settle({**settled, "outcome": "requeued"})
            await parts.until_step(run, "fix")
            assert parts.look().unfinished == 1

    asyncio.run(scenario())


@ON_BOTH
def test_the_drain_does_not_take_leases_that_somebody_took_away_for_none(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), controller=False, workers=0) as parts:
            parts.submit(1)
            (job,) = parts.store.claim("by-hand", "r1", 1).jobs
            run = parts.open_run()
            parts.client.delete("queue:leases")
            assert parts.store.claim("by-hand", "r2", 0).drain_state == "drain"
            await parts.until_step(run, "drain")
            await asyncio.sleep(0.5)
            assert parts.look().running == 0
            assert parts.journal(run, "done", "drain") == []
            parts.client.zadd("queue:leases", {job.job_id: parts.look().at_ms + 60_000})
            settled = {"worker": "by-hand", "id": job.job_id, "fence": str(job.fence), "request": "s1"}
            parts.store.settle({**settled, "outcome": "requeued"})
            await parts.until_step(run, "fix")

    asyncio.run(scenario())


@ON_BOTH
def test_a_class_list_without_canaries_waits_for_a_person_and_pages(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path, classes={"lint-fix": {"deadline_s": 12}})) as parts:
            run = parts.open_run()
            await parts.until_step(run, "fix")
            parts.approve(run, "fix")
            await parts.until(lambda: parts.journal(run, "paged", "canary"), "a page of the canary step")
            assert parts.look().gate.drain_state == "recovering"
            assert "a named person passes this step" in parts.journal(run, "started", "canary")[0].text

            parts.approve(run, "canary")

            await parts.until_ended(run, "succeeded")
            assert parts.state() == ("admit", None, None)

    asyncio.run(scenario())


@ON_BOTH
def test_a_word_for_a_step_that_is_to_come_or_is_done_is_not_taken(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts:
            run = parts.open_run()
            await parts.until_step(run, "fix")
            for step in ("canary", "approve"):
                assert parts.store.approve(run, step, actor="ada", reason="too early") == "not_waiting"
            parts.approve(run, "fix")
            await parts.until(lambda: parts.journal(run, "done", "fix"), "the end of the fix")
            assert parts.store.approve(run, "fix", actor="ben", reason="too late") == "not_waiting"
            assert dict(parts.history(run).approvals) == {"4 fix": "ada: looked at it"}
            assert [entry.actor for entry in parts.journal(run, "approved")] == ["ada"]

    asyncio.run(scenario())


@ON_BOTH
def test_no_word_takes_the_place_of_canaries_that_are_declared(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path, timings={"canary_timeout_s": 1.5}), workers=0) as parts:
            run = parts.open_run()
            await parts.until_step(run, "fix")
            parts.approve(run, "fix")
            await parts.until_step(run, "canary")
            assert parts.store.approve(run, "canary", actor="ada", reason="it works") == "not_waiting"

            await parts.until_ended(run, "rolled_back")

            assert parts.state() == ("drain", "rolled_back", "canary_failed")

    asyncio.run(scenario())


@ON_BOTH
def test_a_waiting_fix_pages_at_once_then_in_a_rhythm_that_a_new_executor_keeps(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path, timings={"fix_page_s": 1.0}), workers=0) as parts:
            run = parts.open_run()
            await parts.until(lambda: parts.journal(run, "paged"), "the first page")
            await parts.executor.stop()
            second = parts.another_executor()
            await second.start()
            await parts.until(lambda: len(parts.journal(run, "paged")) >= 3, "three pages")
            await second.stop()

            at_ms = [entry.at_ms for entry in parts.journal(run, "paged")]
            started_ms = parts.journal(run, "started", "fix")[0].at_ms
            assert at_ms[0] - started_ms < 900
            assert all(later - earlier >= 990 for earlier, later in itertools.pairwise(at_ms))
            assert parts.metrics.registry.get_sample_value(
                "sluicegate_automation_pages_total", {"about": "run"}
            ) == len(at_ms)

    asyncio.run(scenario())


@ON_BOTH
def test_of_two_executors_one_owns_the_run_and_the_other_takes_over_within_two_leases(
    redis_url: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path)) as parts:
            second = parts.another_executor()
            await second.start()
            run = parts.open_run()
            await parts.until_step(run, "fix")
            owner = parts.history(run).run.owner
            assert {entry.actor for entry in parts.journal(run, "started")} == {owner}
            assert len(parts.journal(run, "claimed")) == 1

            first = parts.executor if parts.executor.name == owner else second
            await first.stop()
            stopped_ms = parts.look().at_ms
            seen_s = parts.metrics.registry.get_sample_value(EXECUTOR_SEEN_TIMESTAMP_SECONDS, {"queue": "default"})
            assert seen_s == pytest.approx(stopped_ms / 1000, abs=2)
            await parts.until(lambda: len(parts.journal(run, "claimed")) == 2, "the takeover")
            lease_ms = parts.settings.contract.timings.run_lease_s * 1000
            assert parts.journal(run, "claimed")[-1].at_ms - stopped_ms <= 2 * lease_ms

            await parts.until_step(run, "fix")
            parts.approve(run, "fix")
            await parts.until_ended(run, "succeeded")
            assert [entry.verb for entry in parts.journal(run, "started")] == STEPS
            assert parts.reasons().count("run_reopen") == 1
            await second.stop()

    asyncio.run(scenario())


@ON_BOTH
def test_a_run_of_another_text_of_the_runbook_is_held_not_carried_out(
    redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts:
            answer = parts.store.open_run(
                {"runbook": RECOVERY.name, "trigger": "person", "run": "r1", "actor": "ada", "reason": "a test",
                 "confirmed": True, "digest": "0123456789abcdef", "episode": ""}
            )  # fmt: skip
            assert answer.answer == "moved"
            await parts.until(lambda: parts.journal("r1", "claimed"), "the claim")
            await asyncio.sleep(0.5)
            assert parts.journal("r1", "started") == []
            assert parts.state() == ("drain", None, None)

            assert parts.store.order("abort", "ada", "another version opened it").answer == "moved"
            await parts.until_ended("r1", "rolled_back")

    asyncio.run(scenario())
    assert "this executor has" in capsys.readouterr().out
