"""A queue's gate and a run that holds its lock, and its commands one by one, for tests of what is asked of a run."""

from __future__ import annotations

import json
from typing import Any

from tests.function_values import worth
from tests.gate_frame import FRAME, NOW_MS, gate, run

NEXT_FENCE = f"{NOW_MS}000"
SETTINGS = (
    "q.s.ramp_percents, q.s.canaries_required, q.s.runs_per_hour, q.s.dispatch = { 10, 50, 100 }, 2, 3, 'fifo'"
    " for name, value in pairs({ provider_window_ms = 30000, canary_timeout_ms = 70, fix_timeout_ms = 90,"
    " ramp_step_ms = 20, gate_timeout_ms = 40, burn_down_max_ms = 50, margin_ms = 4, final_retention_ms = 9000,"
    " failed_retention_ms = 9000 }) do q.s.timings[name] = value end"
    " q.s.max_pending, q.s.backlog_limit = 10, 0"
    " q.s.thresholds = { recovered_age_p95_seconds = 15, recovered_slack_p10_seconds = 15,"
    " drain_age_p95_seconds = 25, reject_age_p95_seconds = 20, reject_slack_p10_seconds = 5,"
    " drain_min_failed = 2, sample_min_calls = 20, sample_min_failed = 5, drain_provider_5xx_rate = 0.05,"
    " drain_provider_timeout_rate = 0.1 }"
    " q.s.classes = { c = { deadline_ms = 1000, cost_class = '-', canary = '{}' } } "
)


def asked(client: Any, command: str, arguments: dict[str, Any], more: str = "") -> Any:
    """Run a command with these arguments."""
    packed = json.dumps(arguments).replace("'", "\\'")
    body = f"{FRAME} {SETTINGS} q.a = cjson.decode('{packed}') {more}"
    return worth(client, f"{body} local answer = commands.{command}(q) write_counts(q) return answer")


def raw(client: Any, state: str) -> None:
    client.mset({"drain_state": state, "admission": "open" if state == "admit" else "closed"})


def stands(client: Any, **fields: Any) -> None:
    """Write a gate whose raw keys say the same as its record."""
    client.flushall()
    gate(client, **fields)
    raw(client, fields.get("drain_state", "admit"))


STEP = {"executor": "me", "run": "r", "fence": "5", "seq": 2, "verb": "v", "phase": "done", "text": "", "detail": "{}"}


def step(client: Any, effect: str, more: str = "", **changes: Any) -> str:
    """Commit an effect as the run's owner, and give the answer."""
    request = {"request": f"{effect}-{client.incr('requests')}"}
    return str(asked(client, "commit_step", STEP | request | {"effect": effect} | changes, more)["answer"])


def recovering(client: Any, **fields: Any) -> None:
    """Write a gate in a live recovery."""
    stands(client, **{"drain_state": "recovering", "green": "1", "canary_ok": "2"} | fields)
    run(client)


OPENING: dict[str, Any] = {
    "runbook": "drain-and-recover", "trigger": "webhook", "run": "new", "actor": "am", "reason": "r", "confirmed": True,
    "digest": "", "episode": "",
}  # fmt: skip
