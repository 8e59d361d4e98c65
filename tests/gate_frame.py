"""The frame of a call, in Lua, and a whole gate, for tests of the gate's own parts."""

from __future__ import annotations

from typing import Any

NOW_MS = 1_800_000_000_000
FRAME = (
    f"local q = {{ p = '', now = {NOW_MS}, us = {NOW_MS}000, seen = 0, counted = {{}}, lifetimes = {{}}, woken = 0,"
    " a = {}, s = { classes = {}, cost_classes = {}, timings = { controller_silent_ms = 15, second_drain_ms = 60,"
    " controller_lease_ms = 30, limit_grace_ms = 10, reject_return_ms = 60, reject_dwell_ms = 100,"
    " reject_dwell_max_ms = 160, run_lease_ms = 20, run_cooldown_ms = 1, run_retention_ms = 1000 } } } "
)
FIELDS = {
    "drain_state": "admit", "rollback_reason": "", "pin": "", "pin_note": "", "green": "0", "ramp": "", "since": "1",
    "reason": "init", "actor": "ada", "window": "5", "ok_since": "0", "dwell_ms": "100", "left_reject_at": "0",
    "reopened_at": "0", "limit_at": "0", "canary_ok": "0", "canary_failed": "0", "green_backlog": "0",
}  # fmt: skip


def gate(client: Any, **changes: Any) -> None:
    """Write a gate that is whole, with other fields in its record."""
    client.delete("control:gate")
    client.hset("control:gate", mapping=FIELDS | changes)
    client.mset({"control:epoch": 7, "drain_state": "admit", "admission": "open", "control:seen": NOW_MS})


def run(client: Any, run_id: str = "r", **changes: Any) -> None:
    """Write a live run that holds the lock."""
    client.set("lock:run", run_id)
    body = {"runbook": "drain-and-recover", "state": "running", "fence": "5", "step": "1", "verb": "recover"}
    client.hset(f"run:{run_id}", mapping=body | changes)
