"""The contract that the machine plays with: few places, so that every limit is met often.

Every duration that becomes a TTL is a multiple of GRAIN_MS, so that a clock that stood still can tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluicegate.contract import Contract, Dispatch
from sluicegate.settings import default_settings

GRAIN_MS = 15_000

PLAIN, UNSAFE, COSTLY, LIMITED = "lint-fix", "send-mail", "browse", "batch-run"
COST_CLASS = "browser"
UNDECLARED = "no-such-class"


# What a named person may change while jobs wait and run: the numbers that no record was made under.
CHANGES: tuple[Mapping[str, Any], ...] = (
    {},
    {"max_pending": 7, "max_running": 2},
    {"dispatch": Dispatch.EDF.value, "lease_ms": 45_000},
    {"dispatch": Dispatch.FIFO.value, "loss_budget": 3},
    {"timings": {"closed_retry_s": 45, "final_retention_s": 900, "refusal_retention_s": 180}},
    {"classes": {"lint-fix": {"deadline_s": 60, "max_running": 1, "canary": {"prompt": "canary"}}}},
)


def machine_contract(
    *, strict: bool = True, dispatch: Dispatch = Dispatch.FIFO, changes: Mapping[str, Any] | None = None
) -> Contract:
    """Give the contract; not `strict` lets undeclared classes in as `other`. `changes` are one of CHANGES."""
    body: dict[str, Any] = default_settings().contract.model_dump(mode="json")
    body |= {
        "max_pending": 5,
        "max_running": 3,
        "lease_ms": 30_000,
        "retry_budget": 3,
        "loss_budget": 2,
        "strict_classes": strict,
        "dispatch": dispatch.value,
        "prediction_min_completions": 3,
        "runs_per_hour": 10_000,
        # A whole run is then ten commands, and its ramp refuses nearly everybody at first.
        "canary_required_ok": 1,
        "ramp_percents": (5, 100),
        "classes": {
            PLAIN: {"deadline_s": 60, "canary": {"prompt": "canary"}},
            UNSAFE: {"deadline_s": 60, "effects": "unsafe"},
            COSTLY: {"deadline_s": 60, "cost_class": COST_CLASS},
            LIMITED: {"deadline_s": 180, "effects": "none", "max_pending": 2, "max_running": 1},
        },
        "cost_classes": {COST_CLASS: {"max_pending": 2, "max_running": 1}},
    }
    body["timings"] |= {
        "controller_silent_s": 90,
        "controller_lease_s": 30,
        "final_retention_s": 600,
        "refusal_retention_s": 120,
        "second_drain_s": 60,
        "run_cooldown_s": 15,
        "ramp_step_s": 1,
        "run_lease_s": 15,
    }
    for name, value in (changes or {}).items():
        body[name] = {**body[name], **value} if isinstance(value, dict) else value
    return Contract.model_validate(body)
