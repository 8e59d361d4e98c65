"""How fast does a drill run: `full`, or `fast`, where every duration of contract §3 to §7 is divided by five?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sluicegate.settings import MonitoringSettings, Settings, faster, load

# What a phase's bound gets on top, whatever the profile: starting a process takes the machine as long in both.
MACHINE_GRACE_S = 5.0
FAST_FACTOR = 5.0


class ProfileName(StrEnum):
    """Name the two profiles."""

    FULL = "full"  # the durations of production
    FAST = "fast"  # for tests: a scenario in at most a minute


@dataclass(frozen=True, slots=True)
class Slowness:
    """Hold the latency fault: what a call takes longer, in ms, ± jitter."""

    latency_ms: int
    jitter_ms: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Hold what a profile changes. Scenarios count in seconds of the full profile and convert here."""

    name: ProfileName
    factor: float
    settings: Settings
    slowness: Slowness
    sample_every_s: float

    def real_s(self, full_s: float) -> float:
        """Convert seconds of the full profile to seconds of this one."""
        return full_s / self.factor

    def full_s(self, real_s: float) -> float:
        """Convert seconds of this profile to seconds of the full one."""
        return real_s * self.factor

    def bound_s(self, full_s: float) -> float:
        """Give the longest that something may take here which takes `full_s` in the full profile."""
        return full_s / self.factor + MACHINE_GRACE_S


def profile(name: ProfileName) -> Profile:
    """Build a profile. The environment does not count: a drill is the same wherever it runs."""
    settings = load(None, environment={})
    if name is ProfileName.FULL:
        return Profile(name, 1.0, settings, Slowness(3500, 700), sample_every_s=0.5)
    return Profile(name, FAST_FACTOR, _fast(settings), _FAST_SLOWNESS, sample_every_s=0.2)


# The load and the service time of contract §8 stay in the fast profile, the latency does not. A slow call must lie
# above the canaries' bound, whose floor of 1 s is not divided (test-patch has 36 s ÷ 30 = 1.2 s), and below
# the call's timeout, which is 10 s ÷ 5: slow without being a timeout. With the service time this is 1.45 to 1.75 s,
# which leaves a busy machine 0.25 s before slow calls become timeouts and drain for another reason than the scenario's.
_FAST_SLOWNESS = Slowness(1300, 50)


def _fast(settings: Settings) -> Settings:
    """Divide the contract's durations; Prometheus and its rules run at 1 s, for that is where they get unsteady."""
    monitoring = settings.monitoring
    quick = MonitoringSettings(
        scrape_interval_s=1,
        evaluation_interval_s=1,
        alert_for_s=1,
        keep_firing_for_s=monitoring.keep_firing_for_s / FAST_FACTOR,
        group_wait_s=0,
        group_interval_s=monitoring.group_interval_s / FAST_FACTOR,
        repeat_interval_s=monitoring.repeat_interval_s / FAST_FACTOR,
    )
    return faster(settings, FAST_FACTOR).model_copy(update={"monitoring": quick})
