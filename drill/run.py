"""Run one drill from the first process to the verdict: phases act and wait, the load goes on, all is recorded."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from drill.children import Children
from drill.gathering import gather
from drill.interrupt import Interrupt, Interrupted
from drill.load import Ask, Batch, Load, LoadShape, Submit
from drill.needs import Plan
from drill.options import DrillOptions
from drill.profile import Profile, profile
from drill.rig import Rig
from drill.scenarios import find_scenario
from drill.scenarios.scenario import Phase, Scenario, View
from drill.screen import Frame, Screen
from drill.timeline import PhaseRecord, Timeline
from drill.topology import Topology, check_programs
from drill.verdict import Evidence, Verdict, judge
from drill.watcher import Watcher
from sluicegate.admission import Decision
from sluicegate.errors import SluicegateError
from sluicegate.producer import Producer

_LOOKS_EVERY_S = 0.1
# After the load: what is under way is done within a call and its retries; the bound is the retries' longest wait twice.
_SETTLES_WITHIN_S = 60.0


@dataclass(frozen=True)
class Outcome:
    """Hold how a drill went. Evidence and verdict are missing where it ended before anything was seen."""

    scenario: Scenario
    profile: Profile
    started_at: datetime
    parts: tuple[str, ...]
    evidence: Evidence | None
    verdict: Verdict | None
    interrupted: Interrupted | None = None
    error: str = ""

    @property
    def exit_code(self) -> int:
        """Return 0 when all that was expected was seen, 128 + signal when it was interrupted, else 1."""
        if self.interrupted is not None:
            return self.interrupted.exit_code
        return 0 if self.verdict is not None and self.verdict.passed and not self.error else 1


class Drill:
    """Run the phases of one scenario on a running topology."""

    def __init__(self, rig: Rig, watcher: Watcher, scenario: Scenario, screen: Screen, interrupt: Interrupt) -> None:
        self._rig = rig
        self._watcher = watcher
        self._scenario = scenario
        self._screen = screen
        self._interrupt = interrupt

    def run(self, at_least_s: float) -> None:
        """Go through the phases until one is missed, keep the load on for `at_least_s`, then let it settle."""
        began = time.monotonic()
        self._rig.load.start()
        try:
            reached = all(self._go_through(phase) for phase in self._scenario.phases)
            while reached and time.monotonic() - began < at_least_s:
                self._look()
        finally:
            self._rig.load.stop()
        if reached and not self._scenario.ends_closed:
            self._settle()

    def _go_through(self, phase: Phase) -> bool:
        record = PhaseRecord(phase.name, phase.text, time.time_ns() // 1_000_000, waited_for=phase.until.name)
        self._rig.timeline.phases.append(record)
        try:
            if phase.act is not None:
                phase.act(self._rig)
            record.reached = self._wait(phase, record)
        except SluicegateError as error:
            record.seen = str(error)
        record.to_ms = time.time_ns() // 1_000_000
        return record.reached

    def _wait(self, phase: Phase, record: PhaseRecord) -> bool:
        """Look until the condition holds or its bound has passed; the record keeps what was seen last."""
        deadline = time.monotonic() + self._rig.profile.bound_s(phase.within_s)
        while True:
            view = self._view(record)
            record.seen = phase.until.seen(view)
            if phase.until.holds(view):
                return True
            if time.monotonic() >= deadline:
                return False

    def _view(self, record: PhaseRecord) -> View:
        self._look()
        latest = self._rig.timeline.latest
        if latest is None:
            raise SluicegateError("The drill has seen nothing yet.")
        phase_s = self._rig.profile.full_s((latest.at_ms - record.from_ms) / 1000)
        return View(latest, record.from_ms, phase_s, self._rig.load.submissions)

    def _look(self) -> None:
        self._interrupt.wait(_LOOKS_EVERY_S)
        self._rig.timeline.add(self._watcher.look())
        self._screen.show(Frame(self._scenario, self._rig))

    def _settle(self) -> None:
        """Wait until no job is ready, delayed or running any more; the verdict says what is left."""
        text = "the load has ended; what is under way is finished"
        record = PhaseRecord("settling", text, time.time_ns() // 1_000_000, waited_for="no job is unfinished")
        self._rig.timeline.phases.append(record)
        deadline = time.monotonic() + self._rig.profile.bound_s(_SETTLES_WITHIN_S)
        while not record.reached and time.monotonic() < deadline:
            left = self._view(record).look.telemetry.unfinished
            record.reached, record.seen = left == 0, f"{left} jobs are unfinished"
        record.to_ms = time.time_ns() // 1_000_000


def run_drill(options: DrillOptions, screen: Screen, interrupt: Interrupt, kept: Callable[[Path], None]) -> Outcome:
    """Start every part, run the scenario, gather the evidence, and end every part, whatever happens.

    `kept` is told where the data folder is when it was to be kept. Raises UsageError for what a person can put right.
    """
    scenario = find_scenario(options.scenario)
    chosen = profile(options.profile)
    plan = Plan(chosen, options.server, options.seed, scenario.needs)
    check_programs(plan)
    children = Children()
    try:
        children.start()
        return _run(options, scenario, Topology(children, plan), screen, interrupt)
    finally:
        folder = children.stop(keep=options.keep)
        if folder is not None:
            kept(folder)


def _run(
    options: DrillOptions, scenario: Scenario, topology: Topology, screen: Screen, interrupt: Interrupt
) -> Outcome:
    started_at = datetime.now(UTC)
    rig, interrupted, error = None, None, ""
    try:
        rig = _begin(options, scenario, topology, screen, interrupt)
        watcher = Watcher(topology.store, topology.prometheus)
        Drill(rig, watcher, scenario, screen, interrupt).run(options.duration_s)
    except Interrupted as signal:
        interrupted = signal
    except SluicegateError as failure:
        if rig is None:
            raise  # nothing was seen yet; the command line says what is wrong
        error = str(failure)
    evidence, lost = _gathered(rig, scenario, screen)
    topology.close()
    verdict = judge(scenario.expectations, evidence) if evidence is not None else None
    parts = topology.real_parts()
    return Outcome(scenario, topology.plan.profile, started_at, parts, evidence, verdict, interrupted, error or lost)


def _begin(options: DrillOptions, scenario: Scenario, topology: Topology, screen: Screen, interrupt: Interrupt) -> Rig:
    """Start every part and say which they are."""

    def starting(part: str) -> None:
        interrupt.check()
        screen.starting(part)

    topology.start(starting, interrupt.wait)
    screen.parts(topology.real_parts())
    chosen = topology.plan.profile
    submit = _submit(topology)
    jobs = scenario.jobs
    load = (
        Load(LoadShape(options.rate_per_s, options.mix, options.seed), submit)
        if jobs is None
        else Batch(jobs, options.seed, submit)
    )
    timeline = Timeline(round(chosen.sample_every_s * 1000), chosen.settings.contract.thresholds)
    return Rig(topology, chosen, timeline, load)


def _submit(topology: Topology) -> Submit:
    """Give the producers' way to the queue: over HTTP where the drill has its API, else the library's."""
    if topology.plan.needs.api:
        return topology.api.submit
    producer = Producer(topology.store)

    def submit(ask: Ask) -> Decision:
        return producer.submit(ask.job_class, ask.payload, idempotency_key=ask.key)

    return submit


def _gathered(rig: Rig | None, scenario: Scenario, screen: Screen) -> tuple[Evidence | None, str]:
    """Gather the evidence if anything was seen; say why where the parts no longer answer."""
    if rig is None or not rig.timeline.samples:
        return None, ""
    screen.gathering()
    try:
        return gather(rig, Watcher(rig.topology.store, rig.topology.prometheus), scenario), ""
    except SluicegateError as failure:
        return None, f"the evidence can't be gathered: {failure}"
