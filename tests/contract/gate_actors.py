"""Act on one open queue as the controller that leads, as whoever opens a run, and as its executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluicegate import keys
from sluicegate.replies import GateAnswer
from sluicegate.run_replies import StepAnswer
from sluicegate.telemetry import GateView
from tests.queues import OpenQueue, wait_until

RUN = {"runbook": "drain-and-recover", "trigger": "webhook", "run": "run-1", "actor": "alert", "reason": "a test"}


class Led:
    """Act as the controller that leads, on one open queue."""

    def __init__(self, queue: OpenQueue) -> None:
        self.queue = queue
        _, self.fence = queue.store.lead("c1")

    def gate(self) -> GateView:
        return self.queue.store.observe().gate

    def decide(self, action: str, *, exit_ok: bool = False, epoch: int | None = None) -> GateAnswer:
        at = self.gate().epoch if epoch is None else epoch
        return self.queue.store.move_gate(
            action=action, reason=f"because_{action}", exit_ok=exit_ok, epoch=at, fence=self.fence, figures='{"age":1}'
        )

    def record(self) -> Mapping[str, str]:
        record: Mapping[str, str] = self.queue.client.hgetall(keys.GATE)
        return record

    def return_from_reject(self) -> tuple[int, int]:
        """Go to reject_new and stay until the dwell has passed; gives the dwell and the time it took, in ms."""
        assert self.decide("reject_new").answer == "moved"
        dwell_ms = int(self.record()["dwell_ms"])
        self.decide("admit", exit_ok=True)
        since_ms = int(self.record()["ok_since"])
        wait_until(lambda: self.decide("admit", exit_ok=True).drain_state == "admit", "the gate opens again")
        return dwell_ms, self.queue.store.gate_log(1)[0].at_ms - since_ms


def now_us(queue: OpenQueue) -> int:
    seconds, micros = queue.client.time()
    return int(seconds) * 1_000_000 + int(micros)


def opened(queue: OpenQueue, **changes: object) -> GateAnswer:
    return queue.store.open_run({**RUN, "confirmed": True, "digest": "", "episode": "", **changes})


def committed(queue: OpenQueue, fence: str, effect: str, request: str, **changes: Any) -> StepAnswer:
    body = {
        "executor": "e1", "run": "run-1", "fence": fence, "request": request, "effect": effect, "seq": 1,
        "verb": effect, "phase": "done", "text": "", "detail": "{}", "reason": "canary_failed",
    }  # fmt: skip
    return queue.store.commit_step({**body, **changes})


def run_key(queue: OpenQueue) -> str:
    return queue.store.keys.run("run-1")


def claimed_run(queue: OpenQueue) -> str:
    assert opened(queue, trigger="person").answer == "moved"
    claim = queue.store.claim_run("e1", "", "")
    assert claim.owned
    return claim.fence


def pass_canaries(queue: OpenQueue, fence: str) -> None:
    """Let a worker run canaries in order round the classes until the gate is green."""
    classes = queue.contract.canary_classes
    for number in range(queue.contract.canaries_required):
        name = classes[number % len(classes)]
        arguments = {"class": name, "n": number, "payload": "{}"}
        assert committed(queue, fence, "canary", f"canary-{number}", **arguments).answer == "moved"
        job = queue.claimed()
        assert queue.store.intent("w1", job.job_id, job.fence) == "go"
        call = {"kind": "ok", "status": 200, "latency_ms": 5}
        settlement = {"worker": "w1", "id": job.job_id, "fence": str(job.fence), "request": f"s-{number}", "call": call}
        assert queue.store.settle({**settlement, "outcome": "succeeded"}).answer == "ok"
    assert queue.store.observe().gate.green
