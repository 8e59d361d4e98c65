"""What a drill says while it runs: a line a second for a pipe, one screen for a terminal."""

from __future__ import annotations

import io
import signal
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from drill.command import told
from drill.interrupt import Interrupted
from drill.live import LiveScreen, sparkline
from drill.load import Load, LoadShape
from drill.rig import Rig
from drill.run import Outcome
from drill.scenarios import SCENARIOS
from drill.screen import Frame, LineScreen, status_line
from drill.timeline import Look
from drill.topology import Topology
from drill.verdict import judge
from sluicegate.admission import Decision
from sluicegate.telemetry import DRAIN_STATE, STABLE_FIELDS, ProviderWindow
from tests.unit.drill_run.story import CHOSEN, history, journal, sample, story, timeline

_START = datetime(2026, 11, 29, 15, 0, 0, tzinfo=UTC)
MAIN_JOB = SCENARIOS["provider-degradation"]
BUSY = sample(
    8,
    "reject_new",
    queue_age_p95_seconds=4.125,
    deadline_slack_p10_seconds=-1.5,
    provider=ProviderWindow(6.0, 20, 2, 0),
    ready=17,
    running=6,
)
LOOK = Look(BUSY, (), (history(*journal()),), (), ("SluicegateQueueAgeHigh",))


def frame() -> Frame:
    load = Load(LoadShape(12, {"lint-fix": 1.0}, 1), lambda ask: Decision(True, ask.key))
    made = timeline(latest=LOOK)
    return Frame(MAIN_JOB, Rig(cast("Topology", SimpleNamespace()), CHOSEN, made, load))


def test_the_line_starts_with_state_and_reason_and_bears_every_stable_field() -> None:
    line = status_line(LOOK, "slow")
    assert line.startswith("state=reject_new reason=init queue_age_p95_seconds=4.12 ")
    names = [pair.partition("=")[0] for pair in line.split()]
    assert set(STABLE_FIELDS) - {DRAIN_STATE} <= set(names)
    assert "deadline_slack_p10_seconds=-1.5 provider_5xx_rate=0.1 provider_timeout_rate=0 " in line
    assert "pending=17 delayed=0 running=6 unknown=0 blocked=0 " in line
    assert line.endswith("firing=SluicegateQueueAgeHigh phase=slow")


def test_no_sample_is_said_to_be_none_and_zero_is_zero() -> None:
    line = status_line(replace(LOOK, telemetry=sample(0), firing=()), "healthy")
    assert "queue_age_p95_seconds=0 " in line
    assert "deadline_slack_p10_seconds=none provider_5xx_rate=none " in line
    assert "firing=none" in line


def test_without_a_terminal_a_second_brings_one_line_and_each_phase_its_own() -> None:
    out = io.StringIO()
    screen = LineScreen(out)
    for _ in range(20):
        screen.show(frame())
    lines = out.getvalue().splitlines()
    assert lines[0] == "phase: healthy: all is well"
    assert [line.startswith("state=") for line in lines] == [False, True]


def test_the_live_screen_shows_phase_gate_fields_jobs_alerts_and_the_step() -> None:
    out = io.StringIO()
    screen = LiveScreen(Console(file=out, force_terminal=True, width=110, height=40, color_system=None))
    screen.starting("exporter")
    screen.parts(("Redis 7.0.15 (/usr/bin/redis-server)",))
    screen.show(frame())
    screen.close()
    text = out.getvalue()
    for shown in (
        "provider-degradation",
        "healthy",
        "reject_new",
        "pending 17",
        "SluicegateQueueAgeHigh",
        "succeeded, reopen",
        "Redis 7.0.15",
        *(set(STABLE_FIELDS)),
    ):
        assert shown in text, shown


@pytest.mark.parametrize(
    ("values", "drawn"), [([0, 1, 2], "▁▅█"), ([None, 3], " █"), ([0, 0], "▁▁"), ([], ""), ([-1, 2], "▁█")]
)
def test_a_sparkline_is_drawn_between_zero_and_its_highest(values: list[float | None], drawn: str) -> None:
    assert sparkline(values) == drawn


def outcome(**spoilt: Any) -> Outcome:
    evidence = story(**spoilt)
    return Outcome(MAIN_JOB, CHOSEN, _START, (), evidence, judge(MAIN_JOB.expectations, evidence))


def test_the_verdict_in_words_tells_what_was_expected_where_it_failed() -> None:
    lines = told(outcome(firing=()))
    assert "FAILED  an alert fires: fired: none" in lines
    assert "        expected: one that asks for a drain, in the real Prometheus" in lines
    assert lines[-1] == "verdict: provider-degradation (fast) failed, 3 of 20 expectations"
    assert outcome(firing=()).exit_code == 1


def test_a_drill_in_which_all_held_passes() -> None:
    assert told(outcome())[-1] == "verdict: provider-degradation (fast) passed, all 20 expectations"
    assert outcome().exit_code == 0


def test_an_error_of_the_drill_itself_fails_it() -> None:
    broken = replace(outcome(), error="the server is gone")
    assert "FAILED  the drill itself: the server is gone" in told(broken)
    assert broken.exit_code == 1


def test_an_interrupted_drill_has_no_verdict() -> None:
    stopped = replace(outcome(), interrupted=Interrupted(signal.SIGTERM))
    assert told(stopped) == ("interrupted by SIGTERM: every process is ended, no verdict",)
    assert stopped.exit_code == 143
