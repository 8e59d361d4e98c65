"""The fix through a hook, a probe or a person: one key, a bounded number of calls, and a person where it is unclear."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import automation.http_act
import automation.outside
from drill.ports import free_port
from tests.automation_parts import ON_BOTH, Parts, quick
from tests.outside_system import Outside, outside

__all__ = ["outside"]  # a fixture
pytestmark = ON_BOTH


FAILED, UNKNOWN = "it did not succeed", "nobody knows whether it was done"


@pytest.fixture(autouse=True)
def _sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automation.outside, "AGAIN_AFTER_S", 0.2)
    monkeypatch.setattr(automation.http_act, "_CALL_TIMEOUT_S", 2.0)


def fixed_by(url: str, folder: Path, **fix: Any) -> Parts:
    # Long enough that a page within a test is one because a person is needed.
    settings = quick(folder, automation={"fix": fix}, timings={"fix_page_s": 60, "fix_timeout_s": 60})
    return Parts(url, settings, controller=False, workers=0)


async def to_fix(parts: Parts) -> str:
    run = parts.open_run()
    await parts.until_step(run, "fix")
    return run


def phases(parts: Parts, run: str) -> list[str]:
    """Give what the call's journal says: its phases with the outcomes' first word."""
    told = (entry for entry in parts.journal(run, verb="fix") if entry.phase in ("intent", "outcome", "unknown"))
    return [f"{entry.phase} {entry.text.split()[0]}" if entry.phase == "outcome" else entry.phase for entry in told]


def test_a_hook_that_answers_2xx_is_called_once_under_the_runs_key(
    redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    async def scenario() -> None:
        async with fixed_by(redis_url, tmp_path, hook_url=f"{outside.url}/fix", hook_method="POST") as parts:
            run = await to_fix(parts)
            await parts.until_step(run, "recover")
            assert outside.calls == [("/fix", f"{run}/fix")]
            assert phases(parts, run) == ["intent", "outcome 204"]
            assert "Idempotency-Key" in parts.journal(run, "started", "fix")[0].text

    asyncio.run(scenario())


def test_what_was_not_carried_out_is_called_again_under_the_same_key(
    redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    async def scenario() -> None:
        outside.statuses = [503, 429]
        async with fixed_by(redis_url, tmp_path, hook_url=f"{outside.url}/fix") as parts:
            run = await to_fix(parts)
            await parts.until_step(run, "recover")
            assert outside.keys == [f"{run}/fix"] * 3
            assert phases(parts, run) == ["intent", "outcome 503", "intent", "outcome 429", "intent", "outcome 204"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("statuses", "calls", "said"),
    [
        ([404], 1, FAILED),
        ([302], 1, FAILED),
        ([503, 503, 503], 3, FAILED),
        ([500], 1, UNKNOWN),
        ([502], 1, UNKNOWN),
        ([504], 1, UNKNOWN),
    ],
    ids=["refused", "redirect", "busy", "failing", "bad-gateway", "late-gateway"],
)
def test_a_hook_that_does_not_succeed_pages_and_waits_for_a_person(
    statuses: list[int], calls: int, said: str, redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    async def scenario() -> None:
        outside.statuses = list(statuses)
        async with fixed_by(redis_url, tmp_path, hook_url=f"{outside.url}/fix") as parts:
            run = await to_fix(parts)
            await parts.until(lambda: parts.journal(run, "paged", "fix"), "the page")
            assert parts.journal(run, "paged", "fix")[0].text == f"the hook was called, {said}: a named person decides"
            assert outside.calls == [("/fix", f"{run}/fix")] * calls
            parts.approve(run, "fix")
            await parts.until_step(run, "recover")
            assert len(outside.calls) == calls

    asyncio.run(scenario())


def test_a_connection_that_is_refused_is_not_a_lost_outcome(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fixed_by(redis_url, tmp_path, hook_url=f"http://127.0.0.1:{free_port()}/fix") as parts:
            run = await to_fix(parts)
            await parts.until(lambda: parts.journal(run, "paged", "fix"), "the page")
            assert phases(parts, run) == ["intent", "outcome not"] * 3

    asyncio.run(scenario())


def test_an_answer_that_never_comes_is_probed_and_never_called_more_than_three_times(
    redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    async def scenario() -> None:
        outside.answers.clear()
        hooks = {"hook_url": f"{outside.url}/fix", "probe_url": f"{outside.url}/health"}
        async with fixed_by(redis_url, tmp_path, **hooks) as parts:
            run = await to_fix(parts)
            await parts.until(lambda: parts.journal(run, "paged", "fix"), "the page")
            await parts.until(lambda: phases(parts, run) == ["intent", "unknown"] * 3, "three lost outcomes")
            assert outside.keys == [f"{run}/fix"] * 3
            outside.fixed.set()
            await parts.until_step(run, "recover")
            assert phases(parts, run)[-1] == "outcome done,"
            assert len(outside.calls) == 3

    asyncio.run(scenario())


def test_a_lost_outcome_without_a_probe_is_left_to_a_person(redis_url: str, tmp_path: Path, outside: Outside) -> None:
    async def scenario() -> None:
        outside.answers.clear()
        async with fixed_by(redis_url, tmp_path, hook_url=f"{outside.url}/fix") as parts:
            run = await to_fix(parts)
            await parts.until(lambda: parts.journal(run, "paged", "fix"), "the page")
            assert phases(parts, run) == ["intent", "unknown"]
            assert len(outside.calls) == 1

    asyncio.run(scenario())


def test_a_probe_alone_ends_the_wait(redis_url: str, tmp_path: Path, outside: Outside) -> None:
    async def scenario() -> None:
        async with fixed_by(redis_url, tmp_path, probe_url=f"{outside.url}/health") as parts:
            run = await to_fix(parts)
            await asyncio.sleep(0.4)
            assert parts.journal(run, "done", "fix") == []
            outside.fixed.set()
            await parts.until_step(run, "recover")
            assert outside.calls == []

    asyncio.run(scenario())
