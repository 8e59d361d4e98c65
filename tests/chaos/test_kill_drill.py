"""However a drill is ended, and in whatever phase: no process, no port and no folder of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.running_drill import (
    DRILL,
    REPOSITORY,
    Places,
    descendants,
    end,
    eventually,
    listening_ports,
    living,
    open_ports,
    read_until,
    start,
)

pytestmark = [pytest.mark.e2e, pytest.mark.chaos, pytest.mark.timeout(150)]

# The line at which the drill is ended: while parts start, then in four phases of the main job.
PHASES = {
    "starting": "starting: automation",
    "healthy": "phase: healthy",
    "slow": "phase: slow",
    "alerted": "phase: alerted",
    "recovering": "phase: recovering",
}
GONE_WITHIN_S = 5.0
STOPPED_WITHIN_S = 15.0
ASKED = (signal.SIGINT, signal.SIGTERM)
# What `make test` runs; all of them take minutes.
QUICK = {("starting", signal.SIGTERM), ("healthy", signal.SIGKILL)}


def case(phase: str, number: signal.Signals) -> object:
    marks = () if (phase, number) in QUICK else (pytest.mark.slow,)
    return pytest.param(phase, number, id=f"{phase}-{number.name}", marks=marks)


CASES = [case(phase, number) for phase in PHASES for number in (*ASKED, signal.SIGKILL)]


@pytest.mark.parametrize(("phase", "number"), CASES)
def test_nothing_is_left_of_a_drill_that_is_ended(phase: str, number: signal.Signals, tmp_path: Path) -> None:
    places = Places.below(tmp_path)
    drill = start(places, "--scenario", "provider-degradation")
    try:
        read_until(drill, PHASES[phase])
        processes = descendants(drill.pid)
        ports = listening_ports(processes)
        assert len(processes) >= (4 if phase == "starting" else 11)  # ten parts and the watchdog
        assert ports
        drill.send_signal(number)
        if number in ASKED:
            ends_by_itself(drill, number, places, phase)
            assert living(processes) == []
        else:
            drill.wait(GONE_WITHIN_S)
            assert eventually(lambda: living(processes) == [], GONE_WITHIN_S), living(processes)
            cleans_up_later(places)
        assert places.left() == []
        assert open_ports().isdisjoint(ports)
    finally:
        end(drill)


def ends_by_itself(drill: subprocess.Popen[str], number: signal.Signals, places: Places, phase: str) -> None:
    """Check exit code and words, and that the report tells what was seen until then."""
    output, _ = drill.communicate(timeout=STOPPED_WITHIN_S)
    assert drill.returncode == 128 + number
    assert f"interrupted by {number.name}" in output
    assert "Traceback" not in output
    if phase != "starting":
        assert f"interrupted by {number.name}" in (places.reports / "latest" / "index.html").read_text()


def cleans_up_later(places: Places) -> None:
    """Check that the next call removes the one folder that a killed drill leaves."""
    assert len(places.left()) == 1
    result = subprocess.run(
        [*DRILL, "--clean"],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(places.temporary)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "1 folders of drills removed" in result.stdout


def test_a_killed_drill_is_cleaned_up_by_the_next_one(tmp_path: Path) -> None:
    places = Places.below(tmp_path)
    first = start(places)
    second = None
    try:
        read_until(first, "starting: automation")
        first.send_signal(signal.SIGKILL)
        first.communicate()
        (left,) = places.left()
        second = start(places)
        read_until(second, "starting: queue server")
        assert left not in places.left()
    finally:
        end(first)
        if second is not None:
            end(second)
