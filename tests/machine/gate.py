"""Read the gate from the raw keys, by rules of its own: what the queue's commands have to obey."""

from __future__ import annotations

from dataclasses import dataclass

from tests.machine.dump import Dump

_TIGHTNESS = {"admit": 0, "reject_new": 1, "recovering": 2, "drain": 3}
_NUMBERS = ("since", "window", "ok_since", "dwell_ms", "limit_at", "canary_ok", "canary_failed", "reopened_at")


@dataclass(frozen=True, slots=True)
class Gate:
    """Hold what is stored and what is in force; `run` is the live lock-holding run."""

    readable: bool = False
    stored: str = "drain"
    effective: str = "drain"
    green: bool = False
    ramp: int | None = None
    window: str = "0"
    epoch: int = 0
    seen_ms: int = 0
    pin: str = ""
    confirmed: int = 0
    acknowledged: int = 0
    run: str = ""
    runbook: str = ""
    run_state: str = ""
    run_owner: str = ""
    run_fence: str = ""
    canary_ok: int = 0
    limit_at: int = 0

    @property
    def recovery_live(self) -> bool:
        return self.runbook == "drain-and-recover" and self.run_state == "running"

    @property
    def takes_canaries(self) -> bool:
        return self.stored == "recovering" and not self.green

    @property
    def pulls_backlog(self) -> bool:
        return self.effective in ("admit", "reject_new") or (self.effective == "recovering" and self.green)


def read_gate(dump: Dump) -> Gate:
    record = dump.hashes.get("control:gate", {})
    state, admission = dump.strings.get("drain_state", ""), dump.strings.get("admission", "")
    epoch = dump.strings.get("control:epoch", "")
    readable = (
        state in _TIGHTNESS
        and admission in ("open", "closed")
        and record.get("drain_state") in _TIGHTNESS
        and all(record.get(field, "").isdecimal() for field in _NUMBERS)
        and epoch.isdecimal()
    )
    run_id = dump.strings.get("lock:run", "")
    run = dump.hashes.get(f"run:{run_id}", {})
    duplicates = dump.hashes.get("control:duplicates", {})
    raw = "reject_new" if (state, admission) == ("admit", "closed") else state
    stored = record.get("drain_state", "drain")
    return Gate(
        readable=readable,
        stored=stored,
        effective=max(raw, stored, key=_TIGHTNESS.__getitem__) if readable else "drain",
        green=record.get("green") == "1",
        ramp=int(record["ramp"]) if record.get("ramp") else None,
        window=record.get("window", "0"),
        epoch=int(epoch) if epoch.isdecimal() else 0,
        seen_ms=int(dump.strings.get("control:seen", "0")),
        pin=record.get("pin", ""),
        confirmed=int(duplicates.get("confirmed", 0)),
        acknowledged=int(duplicates.get("acknowledged", 0)),
        run=run_id,
        runbook=run.get("runbook", ""),
        run_state=run.get("state", ""),
        run_owner=run.get("owner", ""),
        run_fence=run.get("fence", ""),
        canary_ok=int(record.get("canary_ok", 0)) if readable else 0,
        limit_at=int(record.get("limit_at", 0)) if readable else 0,
    )
