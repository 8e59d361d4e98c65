"""Say what the tortured queues are set to: everything so short that a whole run takes some twenty seconds."""

from __future__ import annotations

from pathlib import Path

from sluicegate.settings import Settings, default_settings, faster

_FACTOR = 5.0
LEASE_S = 2.0
_TIMINGS = {
    "canary_timeout_s": 8,
    "burn_down_max_s": 10,
    "burn_down_window_s": 2,
    "gate_timeout_s": 5,
    "ramp_step_s": 1.2,
    "run_lease_s": LEASE_S,
    "run_open_after_s": 6,
    "fix_timeout_s": 40,
    "fix_page_s": 5,
    "drain_timeout_s": 20,
    "freeze_timeout_s": 20,
    "limit_grace_s": 6,
    "episode_look_s": 1,
    "page_repeat_s": 10,
    # One run comes after another, whatever the last one came to.
    "run_cooldown_s": 0.001,
    "second_drain_s": 0.001,
    "reject_return_s": 0.001,
    "reject_dwell_s": 1,
    "reject_dwell_max_s": 1,
    "backoff_first_s": 0.2,
    "backoff_max_s": 1,
    # The replicas start again within it.
    "controller_silent_s": 20,
    "controller_lease_s": 2,
}
# Some seconds without a server are no reason for a second drain.
_THRESHOLDS = {
    "recovered_age_p95_seconds": 10,
    "reject_age_p95_seconds": 30,
    "drain_age_p95_seconds": 40,
    "reject_slack_p10_seconds": 1,
    "recovered_slack_p10_seconds": 2,
}
_CLASSES = {
    "lint-fix": {"deadline_s": 60, "canary": {"prompt": "canary: lint nothing"}},
    "test-patch": {"deadline_s": 90, "canary": {"prompt": "canary: patch nothing"}},
}


def settings_for(queue: str, redis_url: str, outside_url: str, snapshots: Path) -> Settings:
    """Give one queue's settings; the world outside (provider, hook, probe) is at `outside_url`."""
    body = faster(default_settings(), _FACTOR).model_dump(mode="json")
    contract = body["contract"]
    contract["timings"] |= _TIMINGS
    contract["thresholds"] |= _THRESHOLDS
    contract["classes"] = _CLASSES
    contract |= {
        "ramp_percents": [50, 100],
        "expected_service_s": 0.05,
        "runs_per_hour": 1_000_000,
        "concurrent_runs": 1_000_000,
        "storm_queues": 1_000_000,
        "canary_required_ok": 2,
    }
    body |= {"queue": queue, "redis_url": redis_url, "provider_url": f"{outside_url}/{queue}"}
    body["worker"] |= {"max_inflight": 2}
    body["reconcile"] |= {"every_s": 2, "after_s": 3, "ask_again_s": 2}
    body["automation"] |= {
        "port": 0,
        "snapshot_dir": str(snapshots / queue),
        "fix": {"hook_url": f"{outside_url}/{queue}/fix", "probe_url": f"{outside_url}/{queue}/fix"},
    }
    body["monitoring"] |= {"webhook_url": f"{outside_url}/relay", "keep_firing_for_s": 4, "group_interval_s": 4}
    return Settings.model_validate(body)
