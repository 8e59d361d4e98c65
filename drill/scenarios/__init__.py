"""What can go wrong, and what must then be seen? One scenario a file, and this table."""

from __future__ import annotations

from difflib import get_close_matches

from drill.scenarios import (
    admission_paused,
    controller_hung,
    delivered_twice,
    executor_crash,
    fails_in_burn_down,
    killed_unconfirmed,
    never_recovers,
    prometheus_down,
    provider_degradation,
    queue_restart,
    rate_limited,
    slow_start,
    stays_slow,
    worker_crash,
)
from drill.scenarios.scenario import Scenario
from sluicegate.errors import UsageError

SCENARIOS: dict[str, Scenario] = {
    module.SCENARIO.name: module.SCENARIO
    for module in (
        provider_degradation,
        executor_crash,
        worker_crash,
        never_recovers,
        stays_slow,
        fails_in_burn_down,
        controller_hung,
        prometheus_down,
        # The failure-mode matrix of contract §8: a queue of 20 jobs, one failure each.
        admission_paused,
        killed_unconfirmed,
        rate_limited,
        slow_start,
        delivered_twice,
        queue_restart,
    )
}


def find_scenario(name: str) -> Scenario:
    """Return the scenario of this name; raises UsageError that names the nearest one."""
    if name in SCENARIOS:
        return SCENARIOS[name]
    near = get_close_matches(name, SCENARIOS, n=1)
    hint = f"Did you mean `{near[0]}`? " if near else ""
    raise UsageError(
        f"There is no scenario `{name}`.", f"{hint}`sluicegate drill --list` lists the {len(SCENARIOS)} there are."
    )
