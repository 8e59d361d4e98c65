"""The contract that the machine plays with: few places, so that every limit is met often.

Every duration that becomes a TTL is a multiple of GRAIN_MS, so that a clock that stood still can tell them apart.
"""

from __future__ import annotations

from typing import Any

from sluicegate.contract import Contract, Dispatch
from sluicegate.settings import default_settings

GRAIN_MS = 15_000

PLAIN, UNSAFE, COSTLY, LIMITED = "lint-fix", "send-mail", "browse", "batch-run"
COST_CLASS = "browser"
UNDECLARED = "no-such-class"


def machine_contract(*, strict: bool = True, dispatch: Dispatch = Dispatch.FIFO) -> Contract:
    """Give the contract; not `strict` lets undeclared classes in as `other`."""
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
    return Contract.model_validate(body)
