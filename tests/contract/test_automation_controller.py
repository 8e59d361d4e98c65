"""The controller on real servers: what it does tick by tick, and what it never does."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import redis

from automation.controller import Controller, thresholds_of
from automation.metrics import AutomationMetrics
from drill.children import Children
from drill.server import AppendFsync, QueueServer, ServerOptions
from runbooks.alerts import Alert, Notification
from sluicegate.clock import SystemClock
from sluicegate.policy import Thresholds
from sluicegate.store import Store
from tests.automation_parts import ON_BOTH, RECOVERY, Parts, Queue, quick, until
from tests.servers import MakeServer

FIRING = Notification(
    "group",
    (
        Alert(
            "f1",
            True,
            "SluicegateProviderErrorsHigh",
            {"queue": "default", "runbook": RECOVERY.name, "alertname": "SluicegateProviderErrorsHigh"},
            1_000,
            0,
        ),
    ),
    0,
)


async def ticks(parts: Parts, count: int = 3) -> None:
    """Tick by hand, so that what follows is known to come after a look."""
    for _ in range(count):
        await parts.controller.tick()


def by_hand(url: str, settings: Any, **switches: bool) -> Parts:
    """Give the parts without a loop of the controller: the test ticks it."""
    return Parts(url, settings, controller=False, executor=False, **switches, workers=0)


def fail_calls(parts: Parts, count: int) -> None:
    """Let a worker end `count` calls with 503, as the provider window counts them."""
    parts.submit(count)
    for job in parts.store.claim("by-hand", f"fail-{parts.look().at_ms}", count).jobs:
        parts.store.settle(
            {
                "worker": "by-hand",
                "id": job.job_id,
                "fence": str(job.fence),
                "request": job.job_id,
                "outcome": "retry",
                "delay_ms": 60_000,
                "call": {"kind": "5xx", "status": 503, "latency_ms": 5},
            }
        )


def everything(url: str) -> dict[Any, Any]:
    """Take all keys as they are."""
    with redis.Redis.from_url(url) as client:
        return {key: client.dump(key) for key in client.keys("*")}


def put_back(url: str, kept: Mapping[Any, Any]) -> None:
    """Let the server be as it was."""
    with redis.Redis.from_url(url) as client:
        client.flushall()
        for key, value in kept.items():
            client.restore(key, 0, value)


@ON_BOTH
def test_a_healthy_queue_stays_open_and_nothing_is_written_to_its_log(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), executor=False) as parts:
            parts.submit(6)
            before = parts.look().gate.controller_seen_ms
            await parts.until(lambda: parts.look().gate.controller_seen_ms > before + 500, "five ticks")
            assert parts.state() == ("admit", None, None)
            assert parts.reasons() == ["init"]
            gate = parts.look().gate
            assert (gate.decision, gate.decision_reason) == ("admit", "normal")

    asyncio.run(scenario())


@ON_BOTH
def test_age_rejects_then_drains_and_the_unattended_drain_opens_its_run(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), executor=False, workers=0) as parts:
            parts.submit(4, "test-patch")
            await parts.until(lambda: parts.look().gate.run is not None, "the run")

            assert parts.moves()[1:] == [
                ("admit", "reject_new", "admission_threshold"),
                ("reject_new", "drain", "provider_or_queue_age"),
            ]
            drain, opened = parts.store.gate_log(10)[1], parts.store.gate_log(10)[0]
            assert (opened.reason, opened.actor) == ("run_opened", "controller")
            assert opened.at_ms - drain.at_ms >= 600, "a webhook has its time first"
            seen = json.loads(drain.figures)
            assert seen["queue_age_p95_seconds"] >= 2.5
            (run,) = parts.store.runs()
            assert (run.trigger, run.runbook) == ("timer", RECOVERY.name)

    asyncio.run(scenario())


@ON_BOTH
def test_reject_new_opens_again_only_after_the_dwell(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = quick(tmp_path, thresholds={"reject_age_p95_seconds": 0.3, "recovered_age_p95_seconds": 0.2})
        async with Parts(redis_url, settings, executor=False, workers=0) as parts:
            parts.submit(1)
            await parts.until(lambda: parts.state()[0] == "reject_new", "reject_new")
            (job,) = parts.store.claim("by-hand", "r1", 1).jobs
            not_yet_ms = parts.look().at_ms
            parts.store.settle(
                {
                    "worker": "by-hand",
                    "id": job.job_id,
                    "fence": str(job.fence),
                    "request": "s1",
                    "outcome": "succeeded",
                }
            )
            await parts.until(lambda: parts.state()[0] == "admit", "the opening")

            opened = parts.store.gate_log(1)[0]
            assert (opened.reason, opened.actor) == ("normal", "controller")
            assert opened.at_ms - not_yet_ms >= 600

    asyncio.run(scenario())


@ON_BOTH
def test_nothing_counts_as_held_while_nobody_looked(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = quick(tmp_path, timings={"controller_silent_s": 0.8, "reject_dwell_s": 0.5})
        async with by_hand(redis_url, settings) as parts:
            assert parts.store.order("reject", "ada", "a test", pin=False).answer == "moved"
            await ticks(parts, 2)
            seen_ms = parts.look().gate.controller_seen_ms
            await parts.until(lambda: parts.look().at_ms > seen_ms + 900, "the silence")

            await ticks(parts, 1)
            assert parts.state() == ("reject_new", None, None), "the first look after a silence opens nothing"
            assert parts.submit() == ["admission_closed"]
            looked_ms = parts.look().at_ms
            await parts.until(lambda: parts.look().at_ms > looked_ms + 600, "the dwell")
            await ticks(parts, 1)
            # Ticks by hand 0.6 s apart are no silence.
            assert parts.state() == ("admit", None, None)

    asyncio.run(scenario())


def test_a_look_whose_lease_has_ended_moves_nothing(redis_url: str, tmp_path: Path) -> None:
    """What a controller decided before it was stopped must not be applied after it goes on."""

    async def scenario() -> None:
        settings = quick(tmp_path, timings={"controller_lease_s": 0.3, "reject_dwell_s": 0.1})
        async with by_hand(redis_url, settings) as parts:
            parts.store.order("reject", "ada", "a test", pin=False)
            await ticks(parts, 2)
            leading, fence = parts.store.lead("stopped")
            assert not leading
            await parts.until(lambda: parts.store.lead("stopped")[0], "the lease")
            _, fence = parts.store.lead("stopped")
            before = parts.store.tick(fence)
            await parts.until(lambda: parts.look().at_ms > before.at_ms + 400, "the end of the lease")

            late = parts.store.move_gate(
                action="admit", reason="normal", exit_ok=True, epoch=before.gate.epoch, fence=fence, figures="{}"
            )

            assert late.answer == "stale"
            assert parts.state()[0] == "reject_new"
            assert parts.look().gate.controller_seen_ms == before.gate.controller_seen_ms

    asyncio.run(scenario())


@ON_BOTH
def test_of_two_controllers_one_leads_and_the_other_follows(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with by_hand(redis_url, quick(tmp_path)) as parts:
            metrics = AutomationMetrics()
            opening = parts.opening_on(Store.connect(redis_url))
            other = Controller(opening, parts.settings, RECOVERY, SystemClock(), metrics)
            await ticks(parts, 1)
            await other.tick()
            count = metrics.registry.get_sample_value
            assert count("sluicegate_automation_ticks_total", {"result": "followed"}) == 1
            owner = parts.client.hget("lock:controller", "owner")
            await parts.until(lambda: not parts.client.hget("lock:controller", "lease_end") or lapsed(parts), "lease")
            await other.tick()
            assert count("sluicegate_automation_ticks_total", {"result": "led"}) == 1
            assert parts.client.hget("lock:controller", "owner") != owner

    def lapsed(parts: Parts) -> bool:
        return int(parts.client.hget("lock:controller", "lease_end")) < parts.look().at_ms

    asyncio.run(scenario())


@ON_BOTH
def test_a_pinned_drain_opens_no_run_and_pages_again(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path, timings={"page_repeat_s": 0.3}), executor=False) as parts:
            assert parts.store.order("drain", "ada", "maintenance").answer == "moved"
            began_ms = parts.look().at_ms
            await parts.until(lambda: parts.look().at_ms > began_ms + 1_200, "twice the time after which a run opens")
            assert parts.state() == ("drain", "operator", None)
            assert parts.store.runs() == ()
            pages = parts.metrics.registry.get_sample_value("sluicegate_automation_pages_total", {"about": "pinned"})
            assert pages is not None
            assert pages >= 3

            assert parts.store.order("release", "ada", "done").answer == "moved"
            await parts.until(lambda: parts.look().gate.run is not None, "the run of the released drain")

    asyncio.run(scenario())


@ON_BOTH
def test_the_page_of_a_queue_that_was_never_opened_says_what_opens_it(
    redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with by_hand(redis_url, quick(tmp_path), initialised=False) as parts:
            await ticks(parts)

    asyncio.run(scenario())
    (page,) = [line for line in capsys.readouterr().out.splitlines() if "gate_pinned" in line]
    assert "sluicegate queue init --settings FILE --as NAME --reason WHY" in page
    assert "gate release" not in page


@ON_BOTH
def test_a_rolled_back_gate_opens_no_run_though_an_alert_fires(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), episodes=True, workers=0) as parts:
            run = parts.open_run()
            await parts.until_step(run, "fix")
            parts.store.order("abort", "ada", "a test")
            await parts.until_ended(run, "rolled_back")
            before = parts.look().gate.epoch

            received = await parts.episodes.receive("alertmanager", FIRING)
            assert [outcome for _, outcome, _ in received.runs] == ["suppressed"]
            began_ms = parts.look().at_ms
            await parts.until(lambda: parts.look().at_ms > began_ms + 1_200, "a few looks and the timer's time")

            assert parts.look().gate.epoch == before, "nothing moved"
            assert parts.state() == ("drain", "rolled_back", "manual_operator_hold")
            assert [one.run_id for one in parts.store.runs()] == [run]
            (episode,) = parts.store.episodes()
            assert episode.outcome == "suppressed: the gate is pinned: rolled_back"

    asyncio.run(scenario())


@ON_BOTH
def test_the_errors_of_the_incident_do_not_end_its_recovery(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = quick(tmp_path, timings={"provider_window_s": 60, "run_open_after_s": 60})
        async with by_hand(redis_url, settings) as parts:
            fail_calls(parts, 6)
            await ticks(parts, 1)
            assert parts.state() == ("drain", None, None)
            assert parts.look().provider.status_5xx == 6
            run = parts.open_run()
            claim = parts.store.claim_run("by-hand", "", "")
            who = {"executor": "by-hand", "run": run, "fence": claim.fence}
            step = {**who, "seq": 5, "verb": "recover", "phase": "done", "text": "", "detail": "{}"}
            assert parts.store.commit_step({**step, "request": "q1", "effect": "recover"}).answer == "moved"
            assert parts.look().provider.calls == 0, "the window starts anew"
            green = {**step, "request": "q2", "effect": "green", "approved_by": "ada"}
            assert parts.store.commit_step(green).answer == "moved"

            # A call that started under the old window ends now: it belongs to the incident.
            await ticks(parts, 3)

            assert parts.state() == ("recovering", None, None)
            assert parts.history(run).run.state == "running"

    asyncio.run(scenario())


def test_a_raw_drain_works_at_once_and_is_adopted_pinned(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with by_hand(redis_url, quick(tmp_path)) as parts:
            parts.client.set("drain_state", "drain")
            assert parts.state()[0] == "drain"
            assert parts.submit() == ["admission_closed"]
            await ticks(parts, 1)
            assert parts.state() == ("drain", "hand_edit", None)
            entry = parts.store.gate_log(1)[0]
            assert (entry.actor, entry.reason) == ("hand", "hand_edit")

            parts.client.set("admission", "open")
            await ticks(parts, 1)
            assert parts.state() == ("drain", "hand_edit", None)
            assert parts.client.get("admission") == "closed"
            assert "sluicegate gate open" in parts.store.gate_log(1)[0].note

    asyncio.run(scenario())


def test_on_an_uninitialised_server_it_writes_no_key(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with by_hand(redis_url, quick(tmp_path), initialised=False) as parts:
            await ticks(parts, 3)
            assert parts.client.keys("*") == []
            assert parts.state() == ("drain", "uninitialised", None)
            ticked = parts.metrics.registry.get_sample_value
            assert ticked("sluicegate_automation_ticks_total", {"result": "unreadable"}) == 3
            assert ticked("sluicegate_automation_settings_drift") == 0

    asyncio.run(scenario())


@ON_BOTH
def test_data_older_than_what_was_seen_is_closed_and_pinned_and_its_run_ended(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with by_hand(redis_url, quick(tmp_path)) as parts:
            await ticks(parts, 1)
            run = parts.open_run()
            parts.store.order("abort", "ada", "only to have an epoch to fall back from")
            dumped = everything(redis_url)
            parts.store.order("open_end_run", "ada", "a test")
            await ticks(parts, 1)
            put_back(redis_url, dumped)

            await ticks(parts, 1)

            assert parts.state()[:2] == ("drain", "control_data_lost")
            assert parts.submit() == ["admission_closed"]
            assert parts.history(run).run.state == "lost"
            assert Queue(redis_url, parts.settings, initialised=False).state()[:2] == ("drain", "control_data_lost")

    asyncio.run(scenario())


@ON_BOTH
def test_it_survives_a_hung_and_a_restarted_server(
    server: QueueServer, tmp_path: Path, make_server: MakeServer, children: Children
) -> None:
    async def scenario() -> None:
        own = make_server(ServerOptions(kind=server.kind, append_only=True, append_fsync=AppendFsync.ALWAYS))
        async with Parts(own.url, quick(tmp_path), executor=False, workers=0) as parts:
            await parts.until(lambda: parts.look().gate.decision == "admit", "the first decision")
            (name,) = children.pids()
            children.suspend(name)
            await asyncio.sleep(1.5)
            children.resume(name)
            back_ms = parts.look().at_ms
            await parts.until(lambda: parts.look().gate.controller_seen_ms > back_ms, "a look after the hang")

            own.kill()
            await asyncio.sleep(0.3)
            own.restart()
            await parts.until(lambda: parts.look().gate.controller_seen_ms > back_ms + 500, "a look after the restart")
            assert parts.state() == ("admit", None, None)

    asyncio.run(scenario())


SILENT = "controller_silent"
PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.automation_parts import Parts, quick

async def main():
    settings = quick(Path("."), timings={"controller_silent_s": 1})
    async with Parts(sys.argv[1], settings, executor=False, workers=0, initialised=False):
        await asyncio.sleep(60)

asyncio.run(main())
"""


def _controller_process(url: str) -> subprocess.Popen[bytes]:
    """Start a controller that can be stopped as a process."""
    return subprocess.Popen([sys.executable, "-c", PROGRAM, url], cwd=Path(__file__).parents[2])


@ON_BOTH
def test_a_stopped_controller_lets_nobody_in_and_a_resumed_one_looks_first(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = quick(tmp_path, timings={"controller_silent_s": 1})
        queue = Queue(redis_url, settings)
        child = _controller_process(redis_url)
        try:
            began_ms = queue.look().at_ms
            await until(lambda: queue.look().gate.controller_seen_ms > began_ms, "the controller")
            assert queue.submit() == [""]
            os.kill(child.pid, signal.SIGSTOP)
            await until(lambda: queue.submit() == [SILENT], "the refusal")
            assert queue.look().gate.drain_state == "admit", "workers go on"
            assert queue.look().gate.admission_ratio == 0
            os.kill(child.pid, signal.SIGCONT)
            await until(lambda: queue.submit() == [""], "the opening")
            assert queue.look().gate.controller_seen_ms > began_ms
        finally:
            child.kill()
            child.wait()
            queue.close()

    asyncio.run(scenario())


def test_another_contract_than_the_own_is_reported_until_it_is_one(
    redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with by_hand(redis_url, quick(tmp_path)) as parts:
            drift = parts.metrics.registry.get_sample_value
            await ticks(parts, 1)
            assert drift("sluicegate_automation_settings_drift") == 0
            other = quick(tmp_path, thresholds={"drain_age_p95_seconds": 2.0}).contract
            parts.store.apply_settings(other.for_redis(), other.digest(), "ada", "a test")
            await ticks(parts, 2)
            assert drift("sluicegate_automation_settings_drift") == 1
            assert thresholds_of(parts.look().thresholds).drain_age_p95_seconds == 2.0, "the stored ones decide"

    asyncio.run(scenario())
    said = capsys.readouterr().out
    assert said.count("settings_differ") == 1
    assert "sluicegate queue apply --settings FILE --as NAME --reason WHY" in said


def test_stored_thresholds_are_typed_and_what_a_later_version_stored_is_left_out() -> None:
    assert thresholds_of({}) == Thresholds()
    typed = thresholds_of({"sample_min_calls": 7.0, "drain_age_p95_seconds": 3, "of_a_later_version": 1.0})
    assert typed == Thresholds(sample_min_calls=7, drain_age_p95_seconds=3.0)
    assert isinstance(typed.sample_min_calls, int)
