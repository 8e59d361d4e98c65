"""Steps of runs that hold no lock, on real servers: what each does, and what it does after it was cut in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import automation.http_act
import automation.outside
from automation.executor import Executor
from automation.notices.sender import Sender
from automation.pace import PROBE_EVERY_S
from automation.starting import start_arguments
from runbooks import library
from runbooks.context import Context
from runbooks.document import parse_document
from runbooks.model import Runbook
from runbooks.plan import lines_by_place
from runbooks.reading import read_runbook
from sluicegate.clock import SystemClock
from sluicegate.notice_board import NoticeBoard
from sluicegate.run_journal import waits_of
from sluicegate.settings import Settings
from tests.automation_parts import ON_BOTH, RUNBOOKS, Parts, quick, until
from tests.outside_system import Outside, outside
from tests.small_server import Handler
from tests.small_server import served as small

__all__ = ["outside"]  # a fixture
pytestmark = ON_BOTH

END = {"timeout": "20s", "on_timeout": "end"}
HOLD = {"timeout": "20s", "on_timeout": "hold"}


@pytest.fixture(autouse=True)
def _sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automation.outside, "AGAIN_AFTER_S", 0.1)


def book(*steps: dict[str, Any], **changes: Any) -> Runbook:
    """Give a runbook of one's own with these steps; its runs hold no lock."""
    body: dict[str, Any] = {
        "apiVersion": "sluicegate/v1",
        "runbook": "mine",
        "summary": "A test.",
        "owner": "a test",
        "max_runtime": "10m",
        "trigger": {"alerts": {"runbook": "mine"}, "target": {"queue_label": "queue"}},
        "confirm": {"any": ["worker_inflight >= 0"], "no_data": "hold"},
        "steps": list(steps),
        "notify": {"when": ["started", "holding", "ended"], "to": ["log"]},
        **changes,
    }
    text = yaml.safe_dump(body, sort_keys=False).encode()
    return library.sound(read_runbook(parse_document(text, "mine.yaml"), "mine.yaml"))


class Mine(Parts):
    """Run one's own runbook with a real executor."""

    def __init__(self, url: str, settings: Settings, runbook: Runbook) -> None:
        super().__init__(url, settings, controller=False, executor=False, workers=0)
        self.book = runbook
        self.executor = Executor(
            self._own, self.everywhere, self.settings, {**RUNBOOKS, runbook.name: runbook}, SystemClock(), self.metrics
        )
        self._services = [self.executor]

    def run(self) -> str:
        answer = self.store.open_run(start_arguments(self.book, "ada", "a test"))
        assert answer.answer == "moved"
        return answer.run

    def said(self) -> list[str]:
        """Give what runbooks have said, oldest first."""
        return [fields["text"] for _, fields in self.client.xrange("notices") if fields["kind"] == "said"]

    def told(self, run: str, *phases: str) -> list[tuple[str, str]]:
        return [(entry.phase, entry.text) for entry in self.history(run).journal if entry.phase in phases]


def script(folder: Path, name: str, text: str) -> list[str]:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return [sys.executable, str(file)]


def carried_out(url: str, settings: Settings, runbook: Runbook, then: Callable[[Mine, str], Any]) -> None:
    """Run it, and look at it when it has ended as succeeded."""

    async def scenario() -> None:
        async with Mine(url, settings, runbook) as parts:
            run = parts.run()
            await parts.until_ended(run, "succeeded")
            then(parts, run)

    asyncio.run(scenario())


def test_the_journal_has_the_lines_of_the_plan(redis_url: str, tmp_path: Path) -> None:
    steps = ({"reject": END}, {"notify": {"text": "Queue {{ queue }} waits.", **END}})

    def then(parts: Mine, run: str) -> None:
        started = {entry.seq: entry.text for entry in parts.journal(run, "started")}
        assert started == lines_by_place(parts.book, Context(parts.settings, run))
        assert parts.state() == ("reject_new", None, None)
        assert parts.said() == ["Queue default waits."]

    carried_out(redis_url, quick(tmp_path), book(*steps), then)


def test_a_receiver_hears_what_a_runbook_says_once(redis_url: str, tmp_path: Path, outside: Outside) -> None:
    receivers = {"oncall": {"kind": "webhook", "url": f"{outside.url}/oncall", "tells": ["said"]}}
    settings = quick(tmp_path, automation={"receivers": receivers})
    said = {"notify": {"text": "Queue {{ queue }} waits.", **END}}

    async def scenario() -> None:
        async with Mine(redis_url, settings, book(said)) as parts:
            board = NoticeBoard.of(parts.settings)
            (receiver,) = parts.settings.automation.receivers.values()
            sender = Sender("oncall", receiver, board, "c1", lambda: True, parts.metrics, SystemClock())
            # It hears what is said from its first look on.
            await sender.turn()
            await sender.start()
            await parts.until_ended(parts.run(), "succeeded")
            await until(lambda: outside.calls, "the receiver told")
            await asyncio.sleep(0.2)
            await sender.stop()
            assert [path for path, _ in outside.calls] == ["/oncall"]

    asyncio.run(scenario())


def test_an_http_step_calls_once_under_its_key(redis_url: str, tmp_path: Path, outside: Outside) -> None:
    call = {
        "url": "{{ automation.urls.switch }}",
        "idempotency_key": "{{ run.id }}/switch",
        "on_unknown": "hold",
        **HOLD,
    }
    settings = quick(tmp_path, automation={"urls": {"switch": f"{outside.url}/switch"}})

    def then(parts: Mine, run: str) -> None:
        assert outside.calls == [("/switch", f"{run}/switch")]
        assert [phase for phase, _ in parts.told(run, "intent", "outcome")] == ["intent", "outcome"]

    carried_out(redis_url, settings, book({"http": call}), then)


def test_without_an_address_in_the_settings_a_person_passes_the_step(redis_url: str, tmp_path: Path) -> None:
    call = {
        "url": "{{ automation.urls.switch }}",
        "idempotency_key": "{{ run.id }}/switch",
        "on_unknown": "hold",
        **HOLD,
    }

    async def scenario() -> None:
        async with Mine(redis_url, quick(tmp_path), book({"http": call})) as parts:
            run = parts.run()
            await until(lambda: parts.journal(run, "paged", "http"), "a page")
            parts.approve(run, "http")
            await parts.until_ended(run, "succeeded")

    asyncio.run(scenario())


def crashed(parts: Mine, run: str, verb: str) -> None:
    """Write what an executor leaves behind that died between its call and the record of it."""
    claim = parts.store.claim_run("dead", "", "", beside="mine")
    base = {"executor": "dead", "run": run, "fence": claim.fence, "seq": 1, "verb": verb, "effect": "journal"}
    line = lines_by_place(parts.book, Context(parts.settings, run))[1]
    for phase, text in (("started", line), ("intent", "call 1")):
        body = {**base, "request": phase, "phase": phase, "text": text, "detail": "{}"}
        assert parts.store.commit_step(body).answer == "moved"
    parts.client.hset(parts.store.keys.run(run), "lease_end", "0")


@pytest.mark.parametrize(
    ("on_unknown", "fixed", "calls", "phases"),
    [
        ("hold", True, 0, ["intent", "unknown", "paged"]),
        ("probe", True, 0, ["intent", "unknown", "outcome", "done"]),
        ("probe", False, 1, ["intent", "unknown", "intent", "outcome", "done"]),
        ("retry", False, 1, ["intent", "unknown", "intent", "outcome", "done"]),
    ],
)
def test_a_crash_between_call_and_record_is_never_a_blind_repeat(
    on_unknown: str, fixed: bool, calls: int, phases: list[str], redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    probe = {"probe": {"url": f"{outside.url}/health"}} if on_unknown == "probe" else {}
    call = {"url": f"{outside.url}/x", "idempotency_key": "{{ run.id }}/x", "on_unknown": on_unknown, **probe, **HOLD}

    async def scenario() -> None:
        if fixed:
            outside.fixed.set()
        async with Mine(redis_url, quick(tmp_path), book({"http": call})) as parts:
            await parts.executor.stop()
            run = parts.run()
            crashed(parts, run, "http")
            await parts.executor.start()
            await until(lambda: parts.told(run, phases[-1]), f"the phase {phases[-1]}")
            assert [phase for phase, _ in parts.told(run, *phases)] == phases
            assert outside.keys == [f"{run}/x"] * calls

    asyncio.run(scenario())


def test_a_word_for_one_call_is_none_for_the_next(redis_url: str, tmp_path: Path, outside: Outside) -> None:
    def call(name: str) -> dict[str, Any]:
        own = {"url": f"{outside.url}/{name}", "idempotency_key": f"{{{{ run.id }}}}/{name}", "on_unknown": "hold"}
        return {"http": {**own, **HOLD}}

    async def scenario() -> None:
        outside.statuses = [404, 404]
        async with Mine(redis_url, quick(tmp_path), book(call("first"), call("second"))) as parts:
            run = parts.run()
            await until(lambda: parts.journal(run, "paged", "http"), "a page for the first")
            parts.approve(run, "http")
            await until(lambda: len(parts.journal(run, "paged", "http")) == 2, "a page for the second")
            assert [path for path, _ in outside.calls] == ["/first", "/second"]
            assert parts.history(run).run.live
            waits = waits_of(parts.history(run))
            assert waits is not None
            assert waits.step == "http"
            parts.approve(run, "http")
            history = await parts.until_ended(run, "succeeded")
            assert history.approvals == {"1 http": "ada: looked at it", "2 http": "ada: looked at it"}

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", ["drips", "never_ends"])
def test_an_answer_that_comes_drop_by_drop_or_never_ends_holds_no_executor_up(
    answer: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automation.http_act, "_CALL_TIMEOUT_S", 0.4)

    class Drips(Handler):
        def respond(self) -> None:
            if answer == "never_ends":
                self.send_response(200)
                self.end_headers()
                self.drip(b"x" * 65_536, pause_s=0.0)
            self.drip(b"HTTP/1.1 200 OK\r\nX-More: " + b"a" * 10_000, pause_s=0.1)

        def drip(self, text: bytes, pause_s: float) -> None:
            step = len(text) if pause_s == 0 else 1
            with contextlib.suppress(OSError):
                for place in range(0, 1_000_000 if pause_s == 0 else len(text), step):
                    self.wfile.write(text if pause_s == 0 else text[place : place + step])
                    time.sleep(pause_s)

    async def scenario() -> None:
        with small(Drips) as address:
            call = {"url": f"http://{address}/x", "idempotency_key": "{{ run.id }}/x", "on_unknown": "hold", **HOLD}
            async with Mine(redis_url, quick(tmp_path), book({"http": call})) as parts:
                run = parts.run()
                if answer == "never_ends":
                    await parts.until_ended(run, "succeeded")
                    assert parts.told(run, "outcome") == [("outcome", "200")]
                    return
                await until(lambda: parts.journal(run, "paged"), "a page", within_s=5)
                assert [phase for phase, _ in parts.told(run, "intent", "unknown", "outcome")] == ["intent", "unknown"]

    asyncio.run(scenario())


def test_what_can_t_tell_is_not_probed_at_every_look(redis_url: str, tmp_path: Path) -> None:
    asked: list[float] = []

    class HangsUp(Handler):
        def respond(self) -> None:
            asked.append(time.monotonic())
            self.close_connection = True

    async def scenario() -> None:
        with small(HangsUp) as address:
            probe = {"on_unknown": "probe", "probe": {"url": f"http://{address}/health"}}
            call = {"url": f"http://{address}/x", "idempotency_key": "{{ run.id }}/x", **probe, **HOLD}
            async with Mine(redis_url, quick(tmp_path), book({"http": call})) as parts:
                await parts.executor.stop()
                run = parts.run()
                crashed(parts, run, "http")
                began = time.monotonic()
                await parts.executor.start()
                await until(lambda: len(asked) == 3, "three questions")
        # From the start: how late a busy machine brings a question says nothing of when it was asked.
        assert asked[2] - began >= 2 * PROBE_EVERY_S

    asyncio.run(scenario())


def test_a_probe_that_does_not_answer_leaves_the_outcome_unknown_and_nothing_is_repeated(
    redis_url: str, tmp_path: Path, outside: Outside
) -> None:
    call = {
        "url": f"{outside.url}/x", "idempotency_key": "{{ run.id }}/x", "on_unknown": "probe",
        "probe": {"url": "http://127.0.0.1:9/health"}, **HOLD,
    }  # fmt: skip

    async def scenario() -> None:
        async with Mine(redis_url, quick(tmp_path), book({"http": call})) as parts:
            await parts.executor.stop()
            run = parts.run()
            crashed(parts, run, "http")
            await parts.executor.start()
            await until(lambda: parts.told(run, "unknown"), "the outcome unknown")
            await asyncio.sleep(0.6)
            assert outside.calls == []
            parts.approve(run, "http")
            await parts.until_ended(run, "succeeded")

    asyncio.run(scenario())


SAY = """
import os, sys
print("key", os.environ["SLUICEGATE_IDEMPOTENCY_KEY"], "secret" in "".join(os.environ.values()), sorted(os.environ))
print(os.environ.get("LET_THROUGH", "none"), os.getcwd(), "x" * 9000)
open(sys.argv[1], "a").write("ran\\n")
"""


def test_a_command_gets_a_cleaned_environment_and_its_output_is_bounded(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LET_THROUGH", "yes")
    monkeypatch.setenv("AWS_TOKEN", "secret")
    ran = tmp_path / "ran"
    allowed = {"argv": [*script(tmp_path, "say.py", SAY), str(ran)], "environment": ["LET_THROUGH"]}
    settings = quick(tmp_path, automation={"commands": {"restart": allowed}})

    def then(parts: Mine, run: str) -> None:
        assert ran.read_text() == "ran\n"
        ((_, said),) = parts.told(run, "outcome")
        assert said.startswith("exit 0: ")
        assert len(said) < 2100
        assert "secret" not in said

    carried_out(redis_url, settings, book({"command": {"name": "restart", "on_unknown": "hold", **HOLD}}), then)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys; print('no such worker'); sys.exit(3)", "exit 3: no such worker"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "exit -9"),
        (None, "not started: No such file or directory"),
    ],
)
def test_a_command_that_fails_waits_for_a_person(text: str | None, said: str, redis_url: str, tmp_path: Path) -> None:
    argv = script(tmp_path, "fail.py", text) if text is not None else [str(tmp_path / "nothing")]
    settings = quick(tmp_path, automation={"commands": {"restart": {"argv": argv}}})

    async def scenario() -> None:
        async with Mine(
            redis_url, settings, book({"command": {"name": "restart", "on_unknown": "retry", **HOLD}})
        ) as parts:
            run = parts.run()
            await until(lambda: parts.journal(run, "paged", "command"), "a page")
            assert parts.told(run, "outcome") == [("outcome", said)]
            parts.approve(run, "command")
            await parts.until_ended(run, "succeeded")

    asyncio.run(scenario())


SLOW = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "a").write(f"{child.pid}\\n")
time.sleep(60)
"""


def test_a_command_past_its_time_is_killed_with_what_it_started_and_its_outcome_is_probed(
    redis_url: str, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    commands = {
        "slow": {"argv": [*script(tmp_path, "slow.py", SLOW), str(pids)], "timeout_s": 1.5},
        "is_done": {"argv": script(tmp_path, "done.py", "")},
    }
    settings = quick(tmp_path, automation={"commands": commands})
    step = {"name": "slow", "on_unknown": "probe", "probe": {"name": "is_done"}, **HOLD}

    def then(parts: Mine, run: str) -> None:
        assert [phase for phase, _ in parts.told(run, "intent", "unknown", "outcome")] == [
            "intent",
            "unknown",
            "outcome",
        ]
        (pid,) = pids.read_text().split()
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().split()[2] == "Z"

    carried_out(redis_url, settings, book({"command": step}), then)


def wait_for(**more: Any) -> dict[str, Any]:
    return {"wait_for": {"pass_if": ["unfinished_jobs >= 1"], "no_data": "hold", **HOLD, **more}}


def test_a_wait_goes_on_once_it_has_held_without_a_break(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Mine(redis_url, quick(tmp_path), book(wait_for(**{"for": "1s"}))) as parts:
            run = parts.run()
            await until(lambda: parts.told(run, "progress"), "a look")
            assert parts.told(run, "progress")[0][1].startswith("not yet: unfinished_jobs is 0")
            parts.submit(1)
            history = await parts.until_ended(run, "succeeded")
            held = [json.loads(entry.detail)["held_s"] for entry in history.journal if entry.phase == "done"]
            assert held[0] >= 1

    asyncio.run(scenario())


def test_what_must_not_be_ends_a_run_without_the_lock_and_leaves_the_gate(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        mine = book(wait_for(pass_if=["worker_inflight >= 9"], fail_if=["unfinished_jobs >= 1"]))
        async with Mine(redis_url, quick(tmp_path), mine) as parts:
            run = parts.run()
            await until(lambda: parts.told(run, "progress"), "a look")
            parts.submit(1)
            history = await parts.until_ended(run, "failed")
            assert "unfinished_jobs is 1" in history.run.ended_why
            assert parts.state() == ("admit", None, None)

    asyncio.run(scenario())


def test_a_step_past_its_time_ends_the_run_where_the_runbook_says_so(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        mine = book(wait_for(timeout="500ms", on_timeout="end"))
        async with Mine(redis_url, quick(tmp_path), mine) as parts:
            history = await parts.until_ended(parts.run(), "failed")
            assert "took longer than 0.5 s" in history.run.ended_why

    asyncio.run(scenario())


def test_a_step_past_its_time_holds_for_a_named_reason_and_goes_on_when_it_can(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Mine(redis_url, quick(tmp_path), book(wait_for(timeout="500ms"))) as parts:
            run = parts.run()
            await until(lambda: parts.journal(run, "paged"), "a page")
            assert parts.journal(run, "paged")[0].text == "holds: step wait_for took longer than 0.5 s"
            parts.submit(1)
            await parts.until_ended(run, "succeeded")

    asyncio.run(scenario())


def test_figures_go_on_being_measured_while_a_person_thinks(redis_url: str, tmp_path: Path) -> None:
    gate = {"pass_if": ["unfinished_jobs == 0"], "fail_if": ["unfinished_jobs >= 5"], "no_data": "hold"}
    approve = {"approve": {"acknowledges": "nothing", "page_every": "1m", "gate": gate, **HOLD}}

    async def scenario() -> None:
        async with Mine(redis_url, quick(tmp_path), book(approve)) as parts:
            run = parts.run()
            await parts.until_step(run, "approve")
            parts.submit(1)
            await until(lambda: len(parts.told(run, "progress")) >= 1, "the figures measured")
            parts.approve(run, "approve")
            await asyncio.sleep(0.4)
            assert parts.history(run).run.live, "a word counts only while the figures hold"
            parts.submit(4)
            history = await parts.until_ended(run, "failed")
            assert "approve: unfinished_jobs is 5" in history.run.ended_why

    asyncio.run(scenario())


def test_a_person_lets_an_approve_step_pass_and_nothing_else_does(redis_url: str, tmp_path: Path) -> None:
    approve = {"approve": {"acknowledges": "nothing", "page_every": "1m", **HOLD}}

    async def scenario() -> None:
        async with Mine(redis_url, quick(tmp_path), book(approve)) as parts:
            run = parts.run()
            await until(lambda: parts.journal(run, "paged", "approve"), "a page")
            assert parts.history(run).run.live
            parts.approve(run, "approve")
            await parts.until_ended(run, "succeeded")

    asyncio.run(scenario())


def reconciled_soon(folder: Path) -> Settings:
    settings = quick(folder, timings={"call_timeout_max_s": 0.2, "call_timeout_min_s": 0.1, "call_reserve_s": 0.1})
    body = settings.model_dump(mode="json")
    body["reconcile"] |= {"after_s": 0.2, "every_s": 0.2}
    return Settings.model_validate(body)


def lost(parts: Mine) -> str:
    """Let a worker vanish with its job, and give the job's id."""
    parts.submit(1)
    (job,) = parts.store.claim("w1", "r1", 1).jobs
    parts.client.zadd("queue:leases", {job.job_id: 1})
    parts.client.zadd("running:lint-fix", {job.job_id: 1})
    parts.client.hset(parts.store.keys.job(job.job_id), "lease_end", "1")
    parts.store.sweep()
    assert parts.look().unknown == 1
    return job.job_id


def test_unknown_jobs_that_somebody_took_out_of_their_list_are_not_none(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Mine(redis_url, reconciled_soon(tmp_path), book({"reconcile": HOLD})) as parts:
            job_id = lost(parts)
            since = parts.client.zscore("queue:unknown", job_id)
            parts.client.delete("queue:unknown")
            run = parts.run()
            await parts.until_step(run, "reconcile")
            await asyncio.sleep(0.5)
            assert parts.look().unknown == 0
            assert parts.history(run).run.live
            parts.client.zadd("queue:unknown", {job_id: since})
            await parts.until_ended(run, "succeeded")
            assert parts.told(run, "progress") == [("progress", "1 jobs settled")]

    asyncio.run(scenario())


def test_unknown_jobs_are_asked_about_until_none_is_left(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Mine(redis_url, reconciled_soon(tmp_path), book({"reconcile": HOLD})) as parts:
            lost(parts)
            run = parts.run()
            await parts.until_ended(run, "succeeded")
            assert parts.look().unknown == 0
            assert parts.told(run, "progress") == [("progress", "1 jobs settled")]

    asyncio.run(scenario())
