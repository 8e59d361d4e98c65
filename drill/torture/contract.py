"""Say what the tortured queue declares: a class for each kind of effect, and one that shares a costly resource."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluicegate.job import Effects
from sluicegate.settings import Settings, default_settings, faster

SLOTS = 8
SERVICE_S = 0.15
JITTER_S = 0.1
# A class that no contract declares: its refusal is final.
UNDECLARED = "no-such-class"
_FACTOR = 5.0


@dataclass(frozen=True, slots=True)
class Declared:
    """Hold a class as the callers see it: what a repeat of it does, and its share of the load."""

    effects: Effects
    share: float


CLASSES = {
    "lint-fix": Declared(Effects.NONE, 0.25),
    "test-patch": Declared(Effects.KEYED, 0.38),
    "send-mail": Declared(Effects.UNSAFE, 0.25),
    "browse": Declared(Effects.KEYED, 0.1),
    UNDECLARED: Declared(Effects.KEYED, 0.02),
}

# The provider honours the keys of the keyed classes alone; else a second call of an unsafe job would do no harm.
FORGOTTEN = tuple(name for name, declared in CLASSES.items() if declared.effects is not Effects.KEYED)


def settings_for(redis_url: str, provider_port: int, provider_url: str, workers: int) -> Settings:
    """Give the settings of one torture: five times as fast as by default, and refusals that come due soon.

    Unknown jobs are asked about 4 s after their lease: a worker that a busy machine holds up for longer would make a
    call behind the back of whoever was asked.
    """
    body = faster(default_settings(), _FACTOR).model_dump(mode="json")
    body |= {"redis_url": redis_url, "provider_url": provider_url}
    body["contract"] |= _contract(workers)
    body["contract"]["timings"] |= {
        "overloaded_retry_s": 1.5,
        "class_limit_retry_s": 1.0,
        "closed_retry_s": 1.5,
        # The drain of an incident is to open a run, though the gate was opened, or another run ended, not long before.
        "second_drain_s": 5.0,
        "run_cooldown_s": 1.0,
    }
    # A busy machine alone is not to close the gate.
    body["contract"]["thresholds"] |= {
        "recovered_age_p95_seconds": 6.0,
        "reject_age_p95_seconds": 8.0,
        "drain_age_p95_seconds": 10.0,
    }
    body["worker"] |= {"max_inflight": SLOTS}
    body["reconcile"] |= {
        "every_s": 0.5,
        "after_s": 4.0,
        "ask_again_s": 1.0,
        "ask_again_max_s": 4.0,
        "asks_a_turn": 50,
        "http_url": f"http://127.0.0.1:{provider_port}/effects/{{key}}",
    }
    return Settings.model_validate(body)


def with_automation(settings: Settings, port: int, snapshots: Path, hook_url: str) -> Settings:
    """Give them with where the automation service listens, and the hook that ends an incident."""
    before = settings.automation
    fix = before.fix.model_copy(update={"hook_url": hook_url})
    update = {"host": "127.0.0.1", "port": port, "snapshot_dir": snapshots, "fix": fix}
    return settings.model_copy(update={"automation": before.model_copy(update=update)})


def _contract(workers: int) -> dict[str, Any]:
    return {
        "max_pending": 150,
        "max_running": workers * SLOTS,
        "lease_ms": 3000,
        "runs_per_hour": 100,
        "cost_classes": {"browser": {"max_running": 1, "max_pending": 4}},
        "classes": {
            "lint-fix": {"deadline_s": 15, "effects": "none"},
            "test-patch": {"deadline_s": 30, "canary": {"prompt": "canary: patch nothing"}},
            "send-mail": {"deadline_s": 30, "effects": "unsafe"},
            "browse": {"deadline_s": 20, "cost_class": "browser"},
        },
    }
