"""What the scenarios of contract §8's failure-mode matrix share: a queue of 20 jobs, few parts, and how they begin."""

from __future__ import annotations

from drill.load import Jobs
from drill.needs import WORKERS, Needs
from drill.rig import Rig
from drill.scenarios.conditions import ready
from drill.scenarios.scenario import Phase

COUNT = 20
# 180 s of deadline: long enough to come through what these scenarios do, and short enough to notice when it is not.
JOBS = Jobs(COUNT, "test-patch")
# No alert belongs to these: what must happen happens without one.
SMALL = Needs(exporter=False, monitoring=False)


def started(workers: int = len(WORKERS)) -> Phase:
    """Wait for the parts: a queue that nobody watches admits nothing."""
    return Phase("started", "the parts have started", ready(workers), within_s=60)


def send_all(rig: Rig) -> None:
    """Submit the whole queue."""
    rig.send(1, COUNT)
