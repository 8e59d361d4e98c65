"""The fast profile is the full one ÷ 5, and its fault means the same there."""

from __future__ import annotations

import pytest

from drill.profile import MACHINE_GRACE_S, Profile, ProfileName, profile
from sluicegate.settings import Timings

FULL, FAST = profile(ProfileName.FULL), profile(ProfileName.FAST)
SERVICE_S = (0.2, 0.4)  # 0.3 ± 0.1 s, the provider's own


def test_every_duration_of_the_contract_is_divided_by_five_but_for_tick_and_floor() -> None:
    same = {"tick_s", "canary_latency_floor_s"}
    for name in Timings.model_fields:
        full, fast = getattr(FULL.settings.contract.timings, name), getattr(FAST.settings.contract.timings, name)
        assert fast == pytest.approx(full if name in same else full / 5), name
    assert FAST.settings.contract.thresholds.reject_age_p95_seconds == 4
    assert FAST.settings.contract.thresholds.drain_age_p95_seconds == 5
    assert FAST.settings.contract.lease_ms == 6000
    assert FAST.settings.contract.classes["lint-fix"].deadline_s == 12


def test_counts_and_rates_stay() -> None:
    full, fast = FULL.settings.contract, FAST.settings.contract
    assert fast.retry_budget == full.retry_budget
    assert fast.max_running == full.max_running
    assert fast.effective_max_pending == full.effective_max_pending
    assert fast.thresholds.drain_provider_5xx_rate == full.thresholds.drain_provider_5xx_rate


def test_prometheus_and_its_rules_run_at_one_second() -> None:
    monitoring = FAST.settings.monitoring
    assert (monitoring.scrape_interval_s, monitoring.evaluation_interval_s, monitoring.alert_for_s) == (1, 1, 1)


def test_the_environment_does_not_change_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADMIT_QUEUE_AGE_P95_MAX_S", "7")
    monkeypatch.setenv("REDIS_URL", "redis://shared.example:6379/0")
    assert profile(ProfileName.FULL) == FULL


@pytest.mark.parametrize("chosen", [FULL, FAST], ids=["full", "fast"])
def test_a_slow_call_fails_canaries_but_is_no_timeout(chosen: Profile) -> None:
    low_s = (chosen.slowness.latency_ms - chosen.slowness.jitter_ms) / 1000 + SERVICE_S[0]
    high_s = (chosen.slowness.latency_ms + chosen.slowness.jitter_ms) / 1000 + SERVICE_S[1]
    # One class whose canary fails each time round is enough: a failure starts the count anew.
    assert low_s > chosen.settings.contract.canary_max_latency_s("lint-fix")
    assert high_s < chosen.settings.contract.timings.call_timeout_max_s - 0.2


def test_seconds_are_converted_both_ways_and_bounds_leave_the_machine_time() -> None:
    assert FAST.real_s(20) == 4
    assert FAST.full_s(4) == 20
    assert FAST.bound_s(20) == 4 + MACHINE_GRACE_S
