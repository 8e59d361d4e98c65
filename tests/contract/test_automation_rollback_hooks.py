"""After a rollback has closed the gate: hooks are called in order, each once, and one that fails makes it degraded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import automation.http_act
import automation.outside
from automation.executor import Executor
from automation.service import runbooks_in_force
from runbooks.context import Context
from runbooks.plan import lines_by_place
from runbooks.verbs.rollback import FIRST_PLACE
from sluicegate.clock import SystemClock
from sluicegate.settings import Settings
from tests.automation_parts import ON_BOTH, Parts, quick, until
from tests.outside_system import Outside, outside
from tests.unit.runbooks.files import changed

__all__ = ["outside"]  # a fixture
pytestmark = ON_BOTH


@pytest.fixture(autouse=True)
def _sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automation.outside, "AGAIN_AFTER_S", 0.1)
    monkeypatch.setattr(automation.http_act, "_CALL_TIMEOUT_S", 2.0)


class Rolling(Parts):
    """Run a drain-and-recover whose rollback has three hooks: recreate by HTTP, a program, and another address."""

    def __init__(
        self, url: str, settings: Settings, outside: Outside, change: Callable[[dict[str, Any]], None]
    ) -> None:
        super().__init__(url, settings, controller=False, executor=False, workers=0)

        def with_hooks(body: dict[str, Any]) -> None:
            def hook(name: str) -> dict[str, str]:
                return {
                    "url": f"{outside.url}/{name}",
                    "idempotency_key": f"{{{{ run.id }}}}/{name}",
                    "on_unknown": "hold",
                }

            body["rollback"]["hooks"] = [hook("recreate"), {"name": "note", "on_unknown": "hold"}, hook("last")]
            change(body)

        self.book = changed(with_hooks)
        books = {**runbooks_in_force(settings), self.book.name: self.book}
        self.executor = Executor(self._own, self.everywhere, self.settings, books, SystemClock(), self.metrics)
        self._services = [self.executor]

    def opened(self) -> str:
        answer = self.store.open_run(
            {
                "runbook": self.book.name,
                "trigger": "person",
                "run": "r1",
                "actor": "ada",
                "reason": "a test",
                "confirmed": True,
                "digest": self.book.digest,
                "episode": "",
            }
        )
        assert answer.answer == "moved"
        return "r1"

    def rollback_phases(self, run: str) -> list[tuple[int, str]]:
        return [
            (entry.seq, entry.phase)
            for entry in self.history(run).journal
            if entry.verb == "rollback" and entry.phase in ("started", "done", "failed")
        ]


def allowed(folder: Path) -> dict[str, Any]:
    return {"commands": {"note": {"argv": ["/bin/sh", "-c", f"echo ran >> {folder / 'note'}"]}}}


def unchanged(body: dict[str, Any]) -> None:
    pass


def test_hooks_are_called_in_order_after_the_gate_is_closed_and_journal_the_lines_of_the_plan(
    redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    async def scenario() -> None:
        async with Rolling(redis_url, quick(tmp_path, automation=allowed(tmp_path)), outside, unchanged) as parts:
            run = parts.opened()
            await parts.until_step(run, "fix")
            assert outside.calls == []
            assert parts.store.order("abort", "ada", "wrong path").answer == "moved"
            await parts.until_ended(run, "rolled_back")
            assert outside.calls == [("/recreate", f"{run}/recreate"), ("/last", f"{run}/last")]
            assert (tmp_path / "note").read_text() == "ran\n"
            assert parts.state() == ("drain", "rolled_back", "manual_operator_hold")
            started = {entry.seq: entry.text for entry in parts.journal(run, "started", "rollback")}
            lines = lines_by_place(parts.book, Context(parts.settings, run))
            assert started == {place: line for place, line in lines.items() if place >= FIRST_PLACE}
            places = range(FIRST_PLACE, FIRST_PLACE + 4)
            assert [phase for _, phase in parts.rollback_phases(run)] == ["started", "done"] * 4
            assert [place for place, phase in parts.rollback_phases(run) if phase == "started"] == list(places)
            order = [entry.phase for entry in parts.history(run).journal]
            assert order.index("rolled_back") < order.index("intent"), "the gate is closed first"

    asyncio.run(scenario())


def test_a_hook_that_fails_leaves_the_others_to_be_called_and_the_run_degraded(
    redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    """Scenario 11: the rollback that did not help still read as a success."""

    async def scenario() -> None:
        outside.statuses = [503, 503, 503]
        async with Rolling(redis_url, quick(tmp_path, automation=allowed(tmp_path)), outside, unchanged) as parts:
            run = parts.opened()
            await parts.until_step(run, "fix")
            parts.store.order("abort", "ada", "wrong path")
            history = await parts.until_ended(run, "rolled_back_degraded")
            assert [path for path, _ in outside.calls] == ["/recreate"] * 3 + ["/last"]
            assert (tmp_path / "note").exists()
            assert "not carried out: POST" in history.run.ended_why
            assert parts.state() == ("drain", "rolled_back", "manual_operator_hold")
            await until(lambda: parts.figure("pages_total", about="run"), "the page, counted")

    asyncio.run(scenario())


def test_a_lost_outcome_of_a_hook_is_not_repeated(redis_url: str, tmp_path: Path, outside: Outside) -> None:
    async def scenario() -> None:
        outside.answers.clear()
        async with Rolling(redis_url, quick(tmp_path, automation=allowed(tmp_path)), outside, unchanged) as parts:
            run = parts.opened()
            await parts.until_step(run, "fix")
            parts.store.order("abort", "ada", "wrong path")
            await until(lambda: parts.journal(run, "unknown", "rollback"), "a lost outcome")
            outside.answers.set()
            await parts.until_ended(run, "rolled_back_degraded")
            assert [path for path, _ in outside.calls] == ["/recreate", "/last"]

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [500, 502, 504])
def test_an_answer_that_tells_nothing_of_what_was_done_is_not_repeated(
    status: int, redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    async def scenario() -> None:
        outside.statuses = [status]
        async with Rolling(redis_url, quick(tmp_path, automation=allowed(tmp_path)), outside, unchanged) as parts:
            run = parts.opened()
            await parts.until_step(run, "fix")
            parts.store.order("abort", "ada", "wrong path")
            await parts.until_ended(run, "rolled_back_degraded")
            assert [path for path, _ in outside.calls] == ["/recreate", "/last"]
            assert [entry.text for entry in parts.journal(run, "unknown", "rollback")] == [str(status)]

    asyncio.run(scenario())


def test_another_executor_goes_on_where_one_was_killed_in_a_rollback(
    redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    async def scenario() -> None:
        outside.statuses = [500]
        async with Rolling(redis_url, quick(tmp_path, automation=allowed(tmp_path)), outside, unchanged) as parts:
            run = parts.opened()
            await parts.until_step(run, "fix")
            parts.store.order("abort", "ada", "wrong path")
            await until(lambda: outside.calls, "the first call")
            await parts.executor.stop()
            books = {parts.book.name: parts.book}
            other = Executor(parts._own, parts.everywhere, parts.settings, books, SystemClock(), parts.metrics)
            await other.start()
            await until(lambda: not parts.history(run).run.live, "the end")
            await other.stop()
            assert [path for path, _ in outside.calls].count("/last") == 1
            assert set(outside.keys) == {f"{run}/recreate", f"{run}/last"}
            assert (tmp_path / "note").read_text() == "ran\n"

    asyncio.run(scenario())


def test_where_nothing_was_done_nothing_is_undone(redis_url: str, tmp_path: Path, outside: Outside) -> None:
    """Scenario 11, its other half: rollbacks ran although nothing had begun."""

    async def scenario() -> None:
        async with Rolling(redis_url, quick(tmp_path, automation=allowed(tmp_path)), outside, unchanged) as parts:
            await parts.executor.stop()
            run = parts.opened()
            parts.store.order("abort", "ada", "before its first step")
            await parts.executor.start()
            await parts.until_ended(run, "rolled_back")
            assert outside.calls == []
            assert parts.rollback_phases(run) == []

    asyncio.run(scenario())


def test_the_workers_are_pointed_back_at_where_they_were(redis_url: str, tmp_path: Path, outside: Outside) -> None:
    def with_provider(body: dict[str, Any]) -> None:
        step = {"endpoint": "{{ automation.urls.good }}", "timeout": "20s", "on_timeout": "rollback"}
        body["steps"].insert(3, {"set_provider": step})
        body["rollback"]["reasons"]["manual_operator_hold"].append("set_provider")
        body["rollback"]["hooks"] = []

    urls = {"urls": {"good": "http://good.example:8080"}}

    async def scenario() -> None:
        async with Rolling(redis_url, quick(tmp_path, automation=urls), outside, with_provider) as parts:
            parts.client.hset("control:endpoint", "current", "http://old.example")
            run = parts.opened()
            await parts.until_step(run, "fix")
            assert parts.store.endpoint() == "http://good.example:8080"
            parts.store.order("abort", "ada", "wrong path")
            await parts.until_ended(run, "rolled_back")
            assert parts.store.endpoint() == "http://old.example"

    asyncio.run(scenario())
