"""Do what `sluicegate drill` was asked for: read the options, run a drill, say how it went, list, clean."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path

from drill import defaults
from drill.clean import clean_folders
from drill.interrupt import Interrupt
from drill.options import DrillOptions, check_writable, parse_choice, parse_duration, parse_mix, parse_rate
from drill.profile import ProfileName, profile
from drill.report import write_report
from drill.run import Outcome, run_drill
from drill.scenarios import SCENARIOS, find_scenario
from drill.scenarios.scenario import Scenario
from drill.screen import LineScreen, Screen
from drill.server import ServerKind
from sluicegate.errors import UsageError

_SEEDS = 1_000_000


@dataclass(frozen=True)
class Words:
    """Hold the command line's words as they were said."""

    scenario: str
    profile: str
    server: str
    rate: str | None
    duration: str | None
    mix: str | None
    seed: int | None
    keep: bool
    report_dir: Path


def parse(words: Words) -> DrillOptions:
    """Read the words; raises UsageError for the first that can't be used."""
    scenario = find_scenario(words.scenario)
    if scenario.jobs is not None:
        _refuse_load(scenario, words)
    chosen = parse_choice("--profile", words.profile, ProfileName)
    return DrillOptions(
        scenario=words.scenario,
        profile=chosen,
        server=parse_choice("--server", words.server, ServerKind),
        rate_per_s=parse_rate(words.rate or defaults.RATE),
        duration_s=0.0 if words.duration is None else parse_duration(words.duration),
        mix=parse_mix(words.mix or defaults.MIX, profile(chosen).settings.contract.classes),
        seed=random.randrange(_SEEDS) if words.seed is None else words.seed,
        keep=words.keep,
        report_dir=check_writable(words.report_dir),
    )


def _refuse_load(scenario: Scenario, words: Words) -> None:
    """Raise UsageError where a load is asked of a scenario that brings its own jobs."""
    given = {"--rate": words.rate, "--duration": words.duration, "--mix": words.mix}
    for flag, word in given.items():
        if word is not None:
            raise UsageError(
                f"{flag} {word!r} can't be used with {scenario.name}: it brings its own {scenario.jobs}.",
                f"Leave {flag} out.",
            )


def run(options: DrillOptions) -> int:
    """Run one drill, write its report, print its verdict, and return the exit code.

    A signal is only noted until all of that is done: a drill that is asked to end still ends tidily and says so.
    """
    with Interrupt() as interrupt:
        screen = _screen()
        kept: list[Path] = []
        try:
            outcome = run_drill(options, screen, interrupt, kept.append)
        finally:
            screen.close()
        for line in told(outcome):
            print(line)
        for folder in kept:
            print(f"kept: {folder}")
        return outcome.exit_code if _reported(options, outcome) else max(1, outcome.exit_code)


def _reported(options: DrillOptions, outcome: Outcome) -> bool:
    """Write the report and say where it is; False when it should have been written and could not."""
    if outcome.evidence is None:
        return True
    try:
        print(f"report: {write_report(options, outcome)}")
    except OSError as error:
        print(f"The report could not be written to {options.report_dir}: {error.strerror}.", file=sys.stderr)
        return False
    return True


def _screen() -> Screen:
    if not sys.stdout.isatty():
        return LineScreen()
    # Loaded late: only a terminal needs it.
    from drill.live import LiveScreen  # noqa: PLC0415 (as above)

    return LiveScreen()


def told(outcome: Outcome) -> tuple[str, ...]:
    """Return the verdict as lines, what did not hold last so that it is seen."""
    rows = outcome.verdict.rows if outcome.verdict is not None else ()
    lines = [f"ok      {row.name}: {row.seen}" for row in rows if row.ok]
    if outcome.interrupted is not None:
        return (f"interrupted by {outcome.interrupted.number.name}: every process is ended, no verdict",)
    for row in rows:
        if not row.ok:
            lines += [f"FAILED  {row.name}: {row.seen}", f"        expected: {row.expected}"]
    if outcome.error:
        lines.append(f"FAILED  the drill itself: {outcome.error}")
    failed = sum(not row.ok for row in rows) + bool(outcome.error)
    word = f"failed, {failed} of {len(rows)} expectations" if failed else f"passed, all {len(rows)} expectations"
    hint = ("`--keep` keeps the parts' logs, for a look at what happened",) if failed else ()
    return (*lines, *hint, f"verdict: {outcome.scenario.name} ({outcome.profile.name}) {word}")


def show_scenarios() -> None:
    """Print every scenario with its line."""
    width = max(map(len, SCENARIOS))
    for scenario in SCENARIOS.values():
        print(f"{scenario.name:<{width}}  {scenario.summary}")


def clean(report_dir: Path) -> None:
    """Remove what drills left on this machine, and say what and where reports are."""
    removed = clean_folders()
    for folder in removed:
        print(f"removed: {folder}")
    print(f"{len(removed)} folders of drills removed")
    if report_dir.is_dir():
        print(f"reports stay: {report_dir}")
