"""Write a gate's state into a server as the library stores it, without the library.

What GateState leaves open (timestamps, the ramp's share, how the data is damaged) is chosen by `Details`, so that the
event of a row finds what it needs; a row's number varies what may vary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sluicegate import keys
from sluicegate.gate import DrainState, GateState, RawEdit, Stored
from sluicegate.keys import Keys
from sluicegate.settings import Contract

CONTROLLER, EXECUTOR, WORKER = "controller-1", "executor-1", "worker-1"
CONTROLLER_FENCE, RUN_FENCE, CANARY_FENCE = "1700000000000001", "1700000000000002", 1700000000000003
OLD_FENCE = "1600000000000000"
RUN_ID, CANARY_ID, OTHER_RUN, BESIDE_RUN = "run-1", "canary-1", "run-0", "beside-1"

# What `Storage.write` may write, under the queue's prefix.
WRITTEN = (
    keys.SETTINGS, keys.DRAIN_STATE, keys.ADMISSION, keys.CANARY_OK_COUNT, keys.ROLLBACK_REASON, keys.EPOCH, keys.GATE,
    keys.SEEN, keys.LOCK_CONTROLLER, keys.LOCK_RUN, keys.RUNS_LIVE, keys.RUNS_RECENT, keys.DUPLICATES, f"run:{RUN_ID}",
)  # fmt: skip
# How much older the data of a gate that fell behind is, in µs.
EARLIER_US = 1_000_000

Pipeline = Any  # redis-py leaves its pipelines untyped


@dataclass(frozen=True, slots=True)
class Damage:
    """Name one way to lose a part of the gate; `fatal` where the record of the last move is gone with it."""

    words: tuple[str, ...]
    fatal: bool = False

    def of(self, prefix: str) -> tuple[str, ...]:
        return (self.words[0], prefix + self.words[1], *self.words[2:])


DAMAGES: tuple[Damage, ...] = (
    Damage(("SET", "drain_state", "opne")),
    Damage(("SET", "admission", "yes")),
    Damage(("DEL", "drain_state")),
    Damage(("DEL", "admission")),
    Damage(("SET", "control:epoch", "many")),
    Damage(("DEL", "control:epoch")),
    Damage(("DEL", "control:gate"), fatal=True),
    Damage(("SET", "control:gate", "a string where a hash belongs"), fatal=True),
    Damage(("HSET", "control:gate", "since", "yesterday")),
    Damage(("HDEL", "control:gate", "window")),
    Damage(("HSET", "control:gate", "canary_ok", "three")),
    Damage(("HSET", "control:gate", "limit_at", "nan")),
)
# In an empty queue a person's slip of the pen is all that can be damaged.
EMPTY_DAMAGES = tuple(
    damage for damage in DAMAGES if damage.words[0] == "SET" and damage.words[1] in ("drain_state", "admission")
)


def without_record(state: GateState) -> GateState:
    """Give what is left to know of a state whose record of the last move is gone."""
    return GateState(
        stored=state.stored,
        run=state.run,
        rolling_back=state.rolling_back,
        duplicates=state.duplicates,
        audited=state.audited,
        behind=state.behind,
    )


@dataclass(frozen=True, slots=True)
class Details:
    """Choose what GateState leaves open; times in ms relative to now."""

    number: int = 0
    damage: Damage = DAMAGES[0]
    held: bool = False
    limit_in_ms: int = 60_000
    ramp_percent: int = 10
    canary_ok: int = 1
    canary_window: bool = True
    canary_run: str = RUN_ID
    old_jobs: bool = False
    urgent_jobs: bool = False


@dataclass(frozen=True, slots=True)
class Storage:
    """Write and read states of many queues of one contract."""

    contract: Contract

    def write(
        self, pipe: Pipeline, at: Keys, state: GateState, details: Details, now_ms: int, epoch: int | None = None
    ) -> None:
        """Queue the commands that store `state`; an uninitialised gate leaves the queue empty."""
        if state.stored is Stored.UNINITIALISED:
            return
        pipe.hset(at(keys.SETTINGS), mapping=self._settings())
        pipe.set(at(keys.DRAIN_STATE), state.drain_state.value if state.raw is RawEdit.NONE else state.raw.value)
        mirrored = "open" if state.drain_state is DrainState.ADMIT else "closed"
        edited = state.raw_admission is not RawEdit.NONE
        pipe.set(at(keys.ADMISSION), state.raw_admission.value if edited else mirrored)
        pipe.set(at(keys.CANARY_OK_COUNT), str(self._canary_ok(state, details)))
        if state.rollback_reason is not None:
            pipe.set(at(keys.ROLLBACK_REASON), state.rollback_reason.value)
        pipe.set(at(keys.EPOCH), str(epoch_of(now_ms) if epoch is None else epoch))
        pipe.hset(at(keys.GATE), mapping=self.record(state, details, now_ms))
        pipe.set(at(keys.SEEN), str(now_ms - 500))
        lease_end = str(now_ms + 600_000)
        pipe.hset(
            at(keys.LOCK_CONTROLLER), mapping={"owner": CONTROLLER, "fence": CONTROLLER_FENCE, "lease_end": lease_end}
        )
        if state.run is not None:
            self._write_run(pipe, at, state, now_ms)
        self._write_duplicates(pipe, at, state, details)
        if state.stored is Stored.UNREADABLE:
            pipe.execute_command(*details.damage.of(at.prefix))

    def record(self, state: GateState, details: Details, now_ms: int) -> dict[str, str]:
        """Give control:gate as the last move wrote it."""
        timings = self.contract.timings
        long_ago = 0 if details.number % 2 else now_ms - round(timings.second_drain_s * 1000) - 1000
        held_ms = round(timings.reject_dwell_s * 1000) + 1
        recovering = state.drain_state is DrainState.RECOVERING
        rejecting = state.drain_state is DrainState.REJECT_NEW
        return {
            "drain_state": state.drain_state.value,
            "rollback_reason": state.rollback_reason.value if state.rollback_reason else "",
            "pin": state.pin.value if state.pin else "",
            "pin_note": "as written" if state.pin else "",
            "green": "1" if state.green else "0",
            "ramp": str(details.ramp_percent) if state.ramp else "",
            "since": str(now_ms - 60_000),
            "reason": "written",
            "actor": "test",
            "window": str(epoch_of(now_ms)) if recovering else "0",
            "ok_since": str(now_ms - held_ms) if rejecting and details.held else "0",
            "dwell_ms": str(round(timings.reject_dwell_s * 1000)),
            "left_reject_at": "0",
            "reopened_at": str(now_ms - 5000 if state.reopened else long_ago),
            "limit_at": str(now_ms + details.limit_in_ms) if recovering or state.ramp else "0",
            "canary_ok": str(self._canary_ok(state, details)),
            "canary_failed": "0",
            "green_backlog": "0",
        }

    def write_jobs(self, pipe: Pipeline, at: Keys, details: Details, now_ms: int) -> None:
        """Queue jobs that hold the run's gate shut: one that has waited for a minute, or one that is due at once."""
        pipe.sadd(at("queue:pairs"), "lint-fix:-")
        if details.old_jobs:
            pipe.zadd(at("queue:fifo:lint-fix:-"), {"job-old": now_ms - 60_000})
            pipe.zadd(at("queue:ready:lint-fix:-"), {"job-old": now_ms + 600_000})
        if details.urgent_jobs:
            pipe.zadd(at("queue:ready:lint-fix:-"), {"job-urgent": now_ms + 5_000})

    def write_canary(self, pipe: Pipeline, at: Keys, state: GateState, details: Details, now_ms: int) -> None:
        """Queue a canary that a worker runs: of this recovery, or left over from an earlier one."""
        recovering = state.drain_state is DrainState.RECOVERING
        window = str(epoch_of(now_ms)) if recovering else "0"
        lease_end = now_ms + 30_000
        job = {
            "state": "running", "class": "lint-fix", "declared": "lint-fix", "cost": "-", "attempt": "1",
            "retries": "0", "deadline": str(now_ms + 60_000), "losses": "0", "rev": "2",
            "fence": str(CANARY_FENCE),
            "eligible": str(now_ms - 1000), "admitted_at": str(now_ms - 1000), "canary": details.canary_run,
            "worker": WORKER, "lease_end": str(lease_end), "started_at": str(now_ms - 500),
            "window": window if details.canary_window else OLD_FENCE, "epoch": str(epoch_of(now_ms)),
        }  # fmt: skip
        pipe.hset(at.job(CANARY_ID), mapping=job)
        pipe.zadd(at("queue:leases"), {CANARY_ID: lease_end})
        pipe.zadd(at("running:canary"), {CANARY_ID: lease_end})

    def write_beside(self, pipe: Pipeline, at: Keys, now_ms: int) -> None:
        """Queue a live run that holds no lock."""
        run = self._run("reject-and-prepare", BESIDE_RUN, now_ms)
        pipe.hset(at.run(BESIDE_RUN), mapping=run)
        pipe.hset(at(keys.LOCK_BESIDE), mapping={run["runbook"]: BESIDE_RUN})

    def _settings(self) -> dict[str, str]:
        return {"contract": self.contract.for_redis(), "digest": self.contract.digest()}

    def _canary_ok(self, state: GateState, details: Details) -> int:
        return self.contract.canaries_required if state.green else details.canary_ok

    def _write_run(self, pipe: Pipeline, at: Keys, state: GateState, now_ms: int) -> None:
        run = self._run(state.run.value if state.run else "", RUN_ID, now_ms)
        pipe.hset(at.run(RUN_ID), mapping={**run, "state": "rolling_back" if state.rolling_back else "running"})
        pipe.set(at(keys.LOCK_RUN), RUN_ID)
        pipe.zadd(at(keys.RUNS_LIVE), {RUN_ID: now_ms - 60_000})
        pipe.zadd(at(keys.RUNS_RECENT), {RUN_ID: now_ms - 60_000})

    def _run(self, runbook: str, run_id: str, now_ms: int) -> dict[str, str]:
        return {
            "id": run_id, "runbook": runbook, "step": "1", "verb": "written", "state": "running", "fence": RUN_FENCE,
            "owner": EXECUTOR, "lease_end": str(now_ms + 600_000), "trigger": "webhook", "actor": "test",
            "reason": "written", "note": "", "digest": "", "started_at": str(now_ms - 60_000), "episode": "",
        }  # fmt: skip

    def _write_duplicates(self, pipe: Pipeline, at: Keys, state: GateState, details: Details) -> None:
        if state.duplicates:
            known = {"confirmed": "3", "acknowledged": "1", "audited": "3" if state.audited else "2"}
            pipe.hset(at(keys.DUPLICATES), mapping=known)
        elif details.number % 3:
            pipe.hset(at(keys.DUPLICATES), mapping={"confirmed": "2", "acknowledged": "2", "audited": "2"})


def epoch_of(now_ms: int) -> int:
    """Give the epoch of the written states: that of a move half a minute ago, in µs."""
    return (now_ms - 30_000) * 1000
