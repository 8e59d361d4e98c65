"""The automation service as a process that is killed, stopped and doubled in every step of a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from drill.children import Children
from drill.readiness import answers_http
from drill.topology import command
from sluicegate.job import Job
from sluicegate.settings import Settings
from sluicegate.worker import Worker
from tests.automation_parts import ON_BOTH, Provider, Queue, quick, until
from tests.outside_system import Outside, outside

__all__ = ["outside"]  # a fixture

pytestmark = [ON_BOTH, pytest.mark.timeout(180)]

# A lease must outlast a busy machine's pauses, and every limit of a step the start of a new process.
TIMINGS = {
    "run_lease_s": 2,
    "limit_grace_s": 20,
    "ramp_step_s": 1,
    "freeze_timeout_s": 60,
    "drain_timeout_s": 60,
    "fix_timeout_s": 60,
    "canary_timeout_s": 60,
    "burn_down_max_s": 60,
    "burn_down_window_s": 30,
    "gate_timeout_s": 60,
    "controller_silent_s": 20,
    "worker_seen_s": 10,
}
# The others are short: a process that dies in them is killed with the slow tests.
LONG_STEPS = ("fix", "reopen")
STEPS = ("freeze", "snapshot", "drain", "fix", "recover", "canary", "burn_down", "reopen")


class Services:
    """Start, kill and stop automation services of one queue."""

    def __init__(self, children: Children, settings: Settings) -> None:
        self.children = children
        self._file = children.folder / "settings.yaml"
        self._file.write_text(yaml.safe_dump(settings.model_dump(mode="json")), encoding="utf-8")

    def start(self, name: str) -> None:
        self.children.start_listening(
            name,
            lambda port: command("automation", "serve", "--settings", str(self._file), "--port", str(port)),
            answers_http("/healthz"),
        )

    def said(self, name: str) -> list[dict[str, Any]]:
        """Give the events a service has logged."""
        lines = self.children.log_path(name).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.parametrize(
    "killed_in",
    [pytest.param(LONG_STEPS, id="the long ones"), pytest.param(STEPS, id="all", marks=pytest.mark.slow)],
)
def test_a_service_killed_in_a_step_is_resumed_and_nothing_happens_twice(
    killed_in: Sequence[str], redis_url: str, tmp_path: Path, children: Children
) -> None:
    async def scenario() -> None:
        # Deadlines that no pause of the machine can pass: what counts here is how often a job was done.
        classes = {"test-patch": {"deadline_s": 600, "canary": {}}}
        queue = Queue(redis_url, quick(tmp_path, timings=TIMINGS, lease_ms=120_000, classes=classes))
        services = Services(children, queue.settings)
        services.start("automation")
        queue.submit(10, "test-patch")
        (held,) = queue.store.claim("by-hand", "r1", 1).jobs
        provider = Provider(latency_s=0.05)
        worker = asyncio.create_task(Worker(queue.store, provider, worker_id="w1").run())
        run = queue.open_run()
        assert queue.store.claim("by-hand", "r2", 0).drain_state == "drain"
        if "drain" not in killed_in:
            give_back(queue, held)
        for step in killed_in:
            await until(lambda: queue.journal(run, "started", step), f"step {step}", 60)  # noqa: B023 (awaited here)
            if step == "reopen":
                await until(lambda: queue.look().gate.drain_state == "admit", "the ramp")
            await asyncio.to_thread(children.kill, "automation")
            killed_ms, entries = queue.look().at_ms, len(queue.journal(run))
            assert queue.history(run).run.live
            if step in ("drain", *LONG_STEPS):
                assert queue.journal(run, "done", step) == [], "it was killed in the step"
            await asyncio.to_thread(services_restart, services)
            ready_ms = queue.look().at_ms
            await until(lambda: len(queue.journal(run)) > entries, "the next entry")  # noqa: B023 (awaited here)
            resumed_ms = queue.journal(run)[entries].at_ms
            lease_ms = TIMINGS["run_lease_s"] * 1000
            assert resumed_ms - max(ready_ms, killed_ms) <= 2 * lease_ms
            if step == "drain":
                give_back(queue, held)
            if step == "fix":
                queue.approve(run, "fix")

        history = await queue.until_ended(run, "succeeded", 60)

        assert [entry.verb for entry in history.journal if entry.phase == "started"] == list(STEPS)
        assert [entry.verb for entry in history.journal if entry.phase == "done"] == list(STEPS[:-1])
        assert len({entry.actor for entry in history.journal if entry.phase == "claimed"}) == len(killed_in) + 1
        assert [move[2] for move in queue.moves()] == ["init", "run_opened", "run_recover", "run_reopen"]
        assert queue.state() == ("admit", None, None)
        effects = [key for key in provider.seen if not key.startswith("canary:")]
        assert len(effects) == len(set(effects)) == 10
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        queue.close()

    asyncio.run(scenario())


def give_back(queue: Queue, job: Job) -> None:
    """Release the lease that keeps the drain waiting."""
    lease = {"worker": "by-hand", "id": job.job_id, "fence": str(job.fence), "request": "s1"}
    assert queue.store.settle({**lease, "outcome": "requeued"}).answer == "ok"


def services_restart(services: Services) -> None:
    services.children.restart("automation")


@pytest.mark.parametrize(
    "probed_done",
    [
        pytest.param(True, id="the call was carried out"),
        pytest.param(False, id="the call was not carried out", marks=pytest.mark.slow),
    ],
)
def test_a_call_whose_outcome_died_with_its_service_is_probed(
    probed_done: bool, redis_url: str, tmp_path: Path, children: Children, outside: Outside
) -> None:
    """Scenario 7: killed between the call and its record."""

    async def scenario() -> None:
        hooks = {"hook_url": f"{outside.url}/fix", "probe_url": f"{outside.url}/health"}
        queue = Queue(redis_url, quick(tmp_path, timings=TIMINGS, automation={"fix": hooks}))
        services = Services(children, queue.settings)
        services.start("automation")
        outside.answers.clear()
        run = queue.open_run()
        await until(lambda: outside.calls, "the call")
        assert [entry.phase for entry in queue.journal(run, verb="fix")] == ["started", "intent"]
        await asyncio.to_thread(children.kill, "automation")
        if probed_done:
            outside.fixed.set()

        await asyncio.to_thread(services_restart, services)
        outside.answers.set()

        await until(lambda: queue.journal(run, "done", "fix"), "the end of the fix", 60)
        phases = [entry.phase for entry in queue.journal(run, verb="fix") if entry.phase not in ("claimed", "paged")]
        key = f"{run}/fix"
        if probed_done:
            assert outside.keys == [key]
            assert phases == ["started", "intent", "unknown", "outcome", "done"]
        else:
            assert set(outside.keys) == {key}
            assert phases[:3] == ["started", "intent", "unknown"]
        queue.close()

    asyncio.run(scenario())


def test_a_stopped_owner_that_goes_on_past_its_lease_is_refused_and_counted(
    redis_url: str, tmp_path: Path, children: Children, outside: Outside
) -> None:
    async def scenario() -> None:
        hooks = {"hook_url": f"{outside.url}/fix", "probe_url": f"{outside.url}/health"}
        queue = Queue(redis_url, quick(tmp_path, timings=TIMINGS, automation={"fix": hooks}))
        services = Services(children, queue.settings)
        services.start("first")
        services.start("second")
        outside.answers.clear()
        run = queue.open_run()
        await until(lambda: outside.calls, "the call")
        first = queue.history(run).run.owner
        name = next(name for name, pid in children.pids().items() if f":{pid}:" in first)
        # The process that waits for the hook's answer stands still until the other has gone on from there.
        children.suspend(name)
        outside.fixed.set()
        await until(lambda: queue.journal(run, "done", "fix"), "the fix by the other", 60)
        second = queue.history(run).run.owner
        assert second != first
        assert queue.look().counters.get("fenced_steps", 0) == 0

        outside.answers.set()
        children.resume(name)

        await until(lambda: queue.look().counters.get("fenced_steps", 0) == 1, "the refusal of the late step")
        await until(lambda: any(event["event"] == "run_fenced" for event in services.said(name)), "its word")
        owners = [entry.actor for entry in queue.journal(run) if entry.phase in ("outcome", "done")]
        last = owners.index(second)
        assert set(owners[:last]) == {first}
        assert set(owners[last:]) == {second}
        assert outside.keys == [f"{run}/fix"]
        queue.close()

    asyncio.run(scenario())
