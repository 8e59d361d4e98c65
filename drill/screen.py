"""Show a drill while it runs: one live screen on a terminal, a line a second elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TextIO

from drill.rig import Rig
from drill.scenarios.scenario import Scenario
from drill.timeline import Look

LINE_EVERY_S = 1.0


@dataclass(frozen=True)
class Frame:
    """Hold what there is to show."""

    scenario: Scenario
    rig: Rig


class Screen(Protocol):
    """Be told what happens; `show` is called many times a second and paces itself."""

    def starting(self, part: str) -> None:
        """Say which part is about to start."""
        ...

    def parts(self, parts: Sequence[str]) -> None:
        """Say which real parts run."""
        ...

    def show(self, frame: Frame) -> None:
        """Show the newest look."""
        ...

    def gathering(self) -> None:
        """Say that the evidence is being gathered."""
        ...

    def close(self) -> None:
        """Give the terminal back; safe twice."""
        ...


def number(value: float | None) -> str:
    """Write a figure for the line, `none` where there is no sample."""
    return "none" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def status_line(look: Look, phase: str) -> str:
    """Write one look as `name=value` pairs: the nine fields under their own names, then what helps to read them."""
    telemetry, gate = look.telemetry, look.telemetry.gate
    pairs = {
        "state": gate.drain_state,
        "reason": gate.reason,
        "queue_age_p95_seconds": number(telemetry.queue_age_p95_seconds),
        "oldest_job_age_seconds": number(telemetry.oldest_job_age_seconds),
        "deadline_slack_p10_seconds": number(telemetry.deadline_slack_p10_seconds),
        "provider_5xx_rate": number(telemetry.provider.rate_5xx),
        "provider_timeout_rate": number(telemetry.provider.rate_timeout),
        "worker_inflight": str(telemetry.worker_inflight),
        "canary_ok_count": str(gate.canary_ok_count),
        "rollback_reason": gate.rollback_reason or "none",
        "pending": str(telemetry.ready),
        "delayed": str(telemetry.delayed),
        "running": str(telemetry.running),
        "unknown": str(telemetry.unknown),
        "blocked": str(telemetry.blocked),
        "run": gate.run.step if gate.run else "none",
        "ramp": "none" if gate.ramp_percent is None else str(gate.ramp_percent),
        "firing": ",".join(look.firing) or "none",
        "phase": phase,
    }
    return " ".join(f"{name}={value}" for name, value in pairs.items())


class LineScreen:
    """Print a line a second, for logs and pipes."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._next = 0.0
        self._phase = ""

    def starting(self, part: str) -> None:
        self._print(f"starting: {part}")

    def parts(self, parts: Sequence[str]) -> None:
        for part in parts:
            self._print(f"runs on: {part}")

    def show(self, frame: Frame) -> None:
        timeline = frame.rig.timeline
        phase = timeline.phases[-1]
        if phase.name != self._phase:
            self._phase = phase.name
            self._print(f"phase: {phase.name}: {phase.text}")
        if timeline.latest is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_EVERY_S
            self._print(status_line(timeline.latest, phase.name))

    def gathering(self) -> None:
        self._print("gathering: what became of every job")

    def close(self) -> None:
        self._out.flush()

    def _print(self, line: str) -> None:
        print(line, file=self._out, flush=True)
