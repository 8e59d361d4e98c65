"""Hold what a scenario's actions may touch: the running parts, the load, and the record of what was done."""

from __future__ import annotations

import time
from dataclasses import dataclass

from drill.effects import read_effects
from drill.load import Load
from drill.profile import Profile
from drill.timeline import Timeline
from drill.topology import ACTOR, AUTOMATION, Topology
from sluicegate.errors import SluicegateError

_CATCH_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.02

REPLACEMENT = "worker-4"

# The kinds of marks that expectations ask for.
FAULT_ON = "fault_on"
FAULT_OFF = "fault_off"
KILLED = "killed"
RESTARTED = "restarted"
SUSPENDED = "suspended"
RESUMED = "resumed"
APPROVED = "approved"
RECONCILED = "reconciled"


@dataclass(frozen=True)
class Rig:
    """Do things to a running drill; each is noted in the timeline with its time."""

    topology: Topology
    profile: Profile
    timeline: Timeline
    load: Load

    def slow_down(self) -> None:
        """Let every call take the profile's latency longer."""
        slowness = self.profile.slowness
        self.topology.faults.slow_down(slowness)
        self._note(FAULT_ON, f"latency {slowness.latency_ms} ± {slowness.jitter_ms} ms on every call")

    def break_calls(self, status: int, probability: float) -> None:
        """Answer a share of the calls with an error status."""
        self.topology.faults.break_calls(status, probability)
        self._note(FAULT_ON, f"status {status} with p = {probability:g}")

    def heal(self) -> None:
        """Take every fault away."""
        self.topology.faults.heal()
        self._note(FAULT_OFF, "every fault is taken away")

    def approve_fix(self, reason: str) -> None:
        """Say, as the person on call, that the newest run's path is fixed."""
        look = self.timeline.latest
        if look is None or look.run is None:
            raise SluicegateError("There is no run whose fix could be approved.")
        self.topology.automation.approve(look.run.run.run_id, "fix", actor=ACTOR, reason=reason)
        self._note(APPROVED, f"the person `{ACTOR}` approves the fix: {reason}")

    def kill_automation(self) -> None:
        """Kill the automation service (SIGKILL)."""
        self.topology.children.kill(AUTOMATION)
        self._note(KILLED, "kill -9 of the automation service")

    def restart_automation(self) -> None:
        """Start the automation service again, as a supervisor would."""
        self.topology.children.restart(AUTOMATION)
        self._note(RESTARTED, "the automation service is started again")

    def suspend_automation(self) -> None:
        """Stop the automation service's execution (SIGSTOP)."""
        self.topology.children.suspend(AUTOMATION)
        self._note(SUSPENDED, "SIGSTOP of the automation service")

    def resume_automation(self) -> None:
        """Let the automation service go on (SIGCONT)."""
        self.topology.children.resume(AUTOMATION)
        self._note(RESUMED, "SIGCONT of the automation service")

    def kill_busy_worker(self) -> None:
        """Kill (SIGKILL) a worker that certainly holds jobs, and start another in its place, as a supervisor would.

        It is suspended first: what it holds then, it still holds when it dies.
        """
        children = self.topology.children
        deadline = time.monotonic() + _CATCH_WITHIN_S
        while time.monotonic() < deadline:
            name, held = self._busiest()
            if held:
                children.suspend(name)
                if held_now := self._held_by(name):
                    children.kill(name)
                    self._note(KILLED, f"kill -9 of {name}, which held {held_now} jobs")
                    self.topology.start_worker(REPLACEMENT)
                    self._note(RESTARTED, f"{REPLACEMENT} is started in its place")
                    return
                children.resume(name)
            time.sleep(_LOOK_EVERY_S)
        raise SluicegateError(f"No worker was caught holding a job within {_CATCH_WITHIN_S:g} s.")

    def reconcile_unknown(self) -> None:
        """Ask the provider's own log, by idempotency key, what became of each unknown job, and settle it so."""
        store = self.topology.store
        done = {effect.key for effect in read_effects(self.topology.effects_log)}
        for job_id in store.list_jobs("unknown"):
            job = store.job(job_id)
            if job is None:
                continue
            key = str(job["job"]["key"])
            outcome = "succeeded" if key in done else "retry"
            reason = f"the provider's log has {'an' if key in done else 'no'} effect under {key}"
            answer, state = store.reconcile(job_id, outcome, actor=ACTOR, reason=reason, source="provider")
            self._note(RECONCILED, f"{job_id}: {reason}: {answer}, now {state}")

    def _busiest(self) -> tuple[str, int]:
        workers = self.topology.store.workers()
        running = [worker for worker in workers if self.topology.children.is_running(worker.worker_id)]
        busiest = max(running, key=lambda worker: worker.inflight, default=None)
        return (busiest.worker_id, busiest.inflight) if busiest is not None else ("", 0)

    def _held_by(self, name: str) -> int:
        return next((worker.inflight for worker in self.topology.store.workers() if worker.worker_id == name), 0)

    def _note(self, kind: str, text: str) -> None:
        self.timeline.mark(time.time_ns() // 1_000_000, kind, text)
