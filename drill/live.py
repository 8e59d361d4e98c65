"""The live screen of a drill on a terminal: phase, gate, the nine fields with sparklines, jobs, alerts, the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from drill.screen import Frame, number
from drill.timeline import Look
from sluicegate import telemetry as names
from sluicegate.telemetry import Telemetry

_EVERY_S = 0.25
_SPARK_SAMPLES = 48
_BARS = "▁▂▃▄▅▆▇█"
_STYLES = {"admit": "bold green", "reject_new": "bold yellow", "recovering": "bold blue", "drain": "bold red"}

Figure = Callable[[Telemetry], float | None]

_FIGURES: tuple[tuple[str, Figure], ...] = (
    (names.QUEUE_AGE_P95_SECONDS, lambda one: one.queue_age_p95_seconds),
    (names.OLDEST_JOB_AGE_SECONDS, lambda one: one.oldest_job_age_seconds),
    (names.DEADLINE_SLACK_P10_SECONDS, lambda one: one.deadline_slack_p10_seconds),
    (names.PROVIDER_5XX_RATE, lambda one: one.provider.rate_5xx),
    (names.PROVIDER_TIMEOUT_RATE, lambda one: one.provider.rate_timeout),
    (names.WORKER_INFLIGHT, lambda one: one.worker_inflight),
    (names.CANARY_OK_COUNT, lambda one: one.gate.canary_ok_count),
)


def sparkline(values: Sequence[float | None]) -> str:
    """Draw values as bars between 0 and their highest; no sample is a blank."""
    known = [value for value in values if value is not None]
    high = max([0.0, *known])
    if high <= 0:
        return "".join(" " if value is None else _BARS[0] for value in values)
    top = len(_BARS) - 1
    return "".join(" " if value is None else _BARS[round(max(0.0, value) / high * top)] for value in values)


class LiveScreen:
    """Redraw one screen in place; what was on the terminal before stays above it."""

    def __init__(self, console: Console | None = None) -> None:
        self._live = Live(console=console or Console(), auto_refresh=False, transient=False)
        self._live.start()
        self._began = time.monotonic()
        self._next = 0.0

    def starting(self, part: str) -> None:
        self._live.update(Panel(f"starting: {part}", title="sluicegate drill"), refresh=True)

    def parts(self, parts: Sequence[str]) -> None:
        for part in parts:
            self._live.console.print(f"runs on: {part}", style="dim", highlight=False)
        self._began = time.monotonic()

    def show(self, frame: Frame) -> None:
        look = frame.rig.timeline.latest
        if look is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        self._live.update(self._draw(frame, look), refresh=True)

    def gathering(self) -> None:
        self._live.console.print("gathering: what became of every job", style="dim", highlight=False)

    def close(self) -> None:
        self._live.stop()

    def _draw(self, frame: Frame, look: Look) -> RenderableType:
        phases = frame.rig.timeline.phases
        elapsed_s = time.monotonic() - self._began
        head = Text.assemble(
            (f"{phases[-1].name} ", "bold"),
            f"({len(phases)} of {max(len(phases), len(frame.scenario.phases))}) {phases[-1].text}",
        )
        title = f"{frame.scenario.name} · {frame.rig.profile.name} · {elapsed_s:.0f} s"
        samples = frame.rig.timeline.samples[-_SPARK_SAMPLES:]
        return Panel(Group(head, _gate(look), _fields(look, samples), _jobs(frame, look)), title=title)


def _gate(look: Look) -> Text:
    gate = look.telemetry.gate
    text = Text.assemble(
        f"{names.DRAIN_STATE} ", (gate.drain_state, _STYLES.get(gate.drain_state, "bold")), f"  reason {gate.reason}"
    )
    text.append(f"  {names.ROLLBACK_REASON} {gate.rollback_reason or 'none'}")
    if gate.pin:
        text.append(f"  pinned: {gate.pin}", style="bold red")
    if gate.ramp_percent is not None:
        text.append(f"  ramp {gate.ramp_percent} %", style="bold blue")
    return text


def _fields(look: Look, samples: Sequence[Telemetry]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, figure in _FIGURES:
        table.add_row(name, number(figure(look.telemetry)), sparkline([figure(sample) for sample in samples]))
    return table


def _jobs(frame: Frame, look: Look) -> Text:
    telemetry = look.telemetry
    counts = {
        "pending": telemetry.ready,
        "delayed": telemetry.delayed,
        "running": telemetry.running,
        "unknown": telemetry.unknown,
        "blocked": telemetry.blocked,
        "expired": telemetry.counters.get("expired", 0),
    }
    run = look.run
    step = f"{run.run.state}, {run.run.verb or 'opening'}" if run is not None else "none"
    answers = frame.rig.load.counts()
    return Text(
        "\n".join(
            (
                "jobs    " + "  ".join(f"{name} {count}" for name, count in counts.items()),
                "load    " + "  ".join(f"{name} {count}" for name, count in answers.most_common()),
                f"alerts  {', '.join(look.firing) or 'none'}",
                f"run     {step}",
            )
        )
    )
