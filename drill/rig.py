"""Hold what a scenario's actions may touch: the running parts, the load, and the record of what was done."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from drill.effects import read_effects
from drill.load import Batch, Load
from drill.profile import Profile
from drill.timeline import Stored, Timeline
from drill.topology import ACTOR, AUTOMATION, Topology
from sluicegate.errors import SluicegateError
from sluicegate.reconciler import Reconciler

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
ABORTED = "aborted"
RECONCILED = "reconciled"
ORDERED = "ordered"
CAUGHT = "caught"
POSTED = "posted"


@dataclass(frozen=True)
class Rig:
    """Do things to a running drill; each is noted in the timeline with its time."""

    topology: Topology
    profile: Profile
    timeline: Timeline
    load: Load | Batch

    def send(self, first: int, last: int) -> None:
        """Submit these jobs of the scenario's own queue (from 1, both included), again if they were before."""
        if not isinstance(self.load, Batch):
            raise SluicegateError("This scenario has a steady load, no queue of its own.")
        self.load.send(first, last)

    def slow_down(self) -> None:
        """Let every call take the profile's latency longer."""
        slowness = self.profile.slowness
        self.topology.faults.slow_down(slowness)
        self.note(FAULT_ON, f"latency {slowness.latency_ms} ± {slowness.jitter_ms} ms on every call")

    def break_calls(self, status: int, probability: float, retry_after_s: int | None = None) -> None:
        """Answer a share of the calls with an error status, and with a Retry-After where one is given."""
        self.topology.faults.break_calls(status, probability, retry_after_s)
        patience = "" if retry_after_s is None else f" and Retry-After: {retry_after_s}"
        self.note(FAULT_ON, f"status {status} with p = {probability:g}{patience}")

    def heal(self) -> None:
        """Take every fault away."""
        self.topology.faults.heal()
        self.note(FAULT_OFF, "every fault is taken away")

    def approve_fix(self, reason: str) -> None:
        """Say, as the person on call, that the newest run's path is fixed."""
        look = self.timeline.latest
        if look is None or look.run is None:
            raise SluicegateError("There is no run whose fix could be approved.")
        self.topology.automation.approve(look.run.run.run_id, "fix", actor=ACTOR, reason=reason)
        self.note(APPROVED, f"the person `{ACTOR}` approves the fix: {reason}")

    def abort_run(self, reason: str) -> None:
        """End the newest run, as the person on call."""
        look = self.timeline.latest
        if look is None or look.run is None:
            raise SluicegateError("There is no run that could be aborted.")
        self.topology.automation.abort(look.run.run.run_id, actor=ACTOR, reason=reason)
        self.note(ABORTED, f"the person `{ACTOR}` aborts the run: {reason}")

    def order_gate(self, order: str, reason: str) -> None:
        """Move the gate, as the person on call; raises where the order changed nothing."""
        answer = self.topology.store.order(order, ACTOR, reason)
        if answer.answer != "moved":
            raise SluicegateError(f"The order `{order}` was answered {answer.answer}, not moved.")
        self.note(ORDERED, f"the person `{ACTOR}` orders {order}: {reason}")

    def kill_automation(self) -> None:
        """Kill the automation service (SIGKILL)."""
        self.topology.children.kill(AUTOMATION)
        self.note(KILLED, "kill -9 of the automation service")

    def restart_automation(self) -> None:
        """Start the automation service again, as a supervisor would."""
        self.topology.children.restart(AUTOMATION)
        self.note(RESTARTED, "the automation service is started again")

    def suspend_automation(self) -> None:
        """Stop the automation service's execution (SIGSTOP)."""
        self.topology.children.suspend(AUTOMATION)
        self.note(SUSPENDED, "SIGSTOP of the automation service")

    def resume_automation(self) -> None:
        """Let the automation service go on (SIGCONT)."""
        self.topology.children.resume(AUTOMATION)
        self.note(RESUMED, "SIGCONT of the automation service")

    def suspend_workers(self) -> None:
        """Stop the execution of every worker (SIGSTOP)."""
        for name in self.topology.plan.needs.workers:
            self.topology.children.suspend(name)
        self.note(SUSPENDED, "SIGSTOP of every worker")

    def resume_workers(self) -> None:
        """Let every worker go on (SIGCONT)."""
        for name in self.topology.plan.needs.workers:
            self.topology.children.resume(name)
        self.note(RESUMED, "SIGCONT of every worker")

    def kill_server(self) -> None:
        """Kill the queue's server (SIGKILL) and start it again on what its append-only file holds.

        What is stored is read before and after.
        """
        self._keep_stored()
        self.topology.server.kill()
        self.note(KILLED, f"kill -9 of the queue's server with {len(self.timeline.stored[-1].pending)} jobs pending")
        self.topology.server.restart()
        self.note(RESTARTED, "the queue's server is started again")
        self._keep_stored()

    def _keep_stored(self) -> None:
        store = self.topology.store
        ids = list(dict.fromkeys(one.decision.job_id for one in self.load.submissions))
        records = {row["id"]: row for row in store.records(ids)["jobs"]}
        self.timeline.stored.append(Stored(store.list_jobs("ready"), records))

    def kill_busy_worker(self, *, unconfirmed: bool = False) -> None:
        """Kill (SIGKILL) a worker that certainly holds jobs, and start another in its place, as a supervisor would.

        It is suspended first: what it holds then, it still holds when it dies. `unconfirmed` asks that the provider
        has done all of them by then, so that only their confirmation is missing.
        """
        children = self.topology.children
        deadline = time.monotonic() + _CATCH_WITHIN_S
        while time.monotonic() < deadline:
            name, held = self._busiest()
            if held:
                children.suspend(name)
                held_now = self._held_by(name)
                if held_now and (not unconfirmed or self._all_done(name)):
                    children.kill(name)
                    self.note(KILLED, f"kill -9 of {name}, which held {held_now} jobs")
                    self.topology.start_worker(REPLACEMENT)
                    self.note(RESTARTED, f"{REPLACEMENT} is started in its place")
                    return
                children.resume(name)
            time.sleep(_LOOK_EVERY_S)
        raise SluicegateError(f"No worker was caught holding a job so within {_CATCH_WITHIN_S:g} s.")

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
            self.note(RECONCILED, f"{job_id}: {reason}: {answer}, now {state}")

    def ask_ledger(self) -> None:
        """Let the queue's own ledger judge each unknown job, as the automation does by its schedule."""
        store = self.topology.store
        reconciler = Reconciler(store, self.topology.settings.reconcile)
        for job_id in store.list_jobs("unknown"):
            answer, finding = asyncio.run(reconciler.one(job_id, ACTOR))
            why = finding.why if finding is not None else "nobody was asked"
            self.note(RECONCILED, f"{job_id}: {why}: {answer.answer}, now {answer.state}")

    def _busiest(self) -> tuple[str, int]:
        workers = self.topology.store.workers()
        running = [worker for worker in workers if self.topology.children.is_running(worker.worker_id)]
        busiest = max(running, key=lambda worker: worker.inflight, default=None)
        return (busiest.worker_id, busiest.inflight) if busiest is not None else ("", 0)

    def _held_by(self, name: str) -> int:
        return next((worker.inflight for worker in self.topology.store.workers() if worker.worker_id == name), 0)

    def _all_done(self, name: str) -> bool:
        """Tell whether the provider's log has an effect of each job that a suspended worker holds."""
        done = {effect.key for effect in read_effects(self.topology.effects_log)}
        store = self.topology.store
        running = (store.job(job_id) for job_id in store.list_jobs("running"))
        held = [record["job"] for record in running if record is not None and record["job"]["worker"] == name]
        return bool(held) and all(job["key"] in done for job in held)

    def note(self, kind: str, text: str) -> None:
        """Note what the drill did, with its time."""
        self.timeline.mark(time.time_ns() // 1_000_000, kind, text)
