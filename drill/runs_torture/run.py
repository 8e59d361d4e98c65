"""Run one torture of runs from the first process to the verdict; its records stay in the report's folder."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drill.checker.logs import BadLog
from drill.checker.runs import LEAST_REFUSED, Demands, judge_runs, read_evidence
from drill.checker.verdict import Verdict
from drill.children import Children
from drill.interrupt import Interrupt
from drill.runs_torture.director import Director
from drill.runs_torture.evidence import take_down
from drill.runs_torture.parts import Parts
from drill.runs_torture.plan import Mischief, Plan, Story, mischiefs, stories
from drill.runs_torture.striker import Striker
from drill.server import ServerKind
from sluicegate.errors import SluicegateError, UsageError

DEMANDS, VERDICT = "demands.json", "verdict.json"
STRIKES, TOLD = "strikes.jsonl", "told.jsonl"
_LAST_STORIES_S = 200.0


@dataclass(frozen=True, slots=True)
class RunsOptions:
    """Hold what a person asks for."""

    runs: int
    queues: int
    seed: int
    within_s: float
    server: ServerKind
    report_dir: Path


def run_torture(options: RunsOptions, interrupt: Interrupt) -> tuple[Path, Verdict]:
    """Start every part, strike, end every part, and judge the records; gives their folder and the verdict."""
    plan = Plan(options.runs, options.queues, options.seed, options.within_s)
    folder = _new_folder(options)
    demands = Demands(plan.runs, plan.least_hits, tuple(Mischief), tuple(Story))
    (folder / DEMANDS).write_text(json.dumps(asdict(demands)), encoding="utf-8")
    children = Children()
    try:
        children.start()
        parts = Parts(children, options.server, plan, folder)
        try:
            interrupt.check()
            parts.start()
            _strike(parts, plan, folder, interrupt)
            take_down(parts, folder)
        finally:
            parts.close()
    finally:
        children.stop()
    return folder, judge_folder(folder)


def judge_folder(folder: Path) -> Verdict:
    """Judge the records of a torture that has ended, and keep the verdict; raises UsageError without any."""
    try:
        raw: dict[str, Any] = json.loads((folder / DEMANDS).read_text(encoding="utf-8"))
        demands = Demands(raw["runs"], raw["least_hits"], tuple(raw["kinds"]), tuple(raw["stories"]))
        verdict = judge_runs(read_evidence(folder), demands)
    except (OSError, ValueError, TypeError, KeyError, BadLog) as error:
        raise UsageError(
            f"{folder} can't be judged: {error}", "Name the folder of a torture that ran to its end."
        ) from error
    (folder / VERDICT).write_text(json.dumps(verdict.as_json(), indent=1) + "\n", encoding="utf-8")
    return verdict


def _strike(parts: Parts, plan: Plan, folder: Path, interrupt: Interrupt) -> None:
    """Let all queues tell their stories, and strike until enough runs have ended under enough strikes of each kind.

    A stale write must have been refused by then, too: owners of runs are stopped for that as often as it takes. It ends
    without what it lacks when the time is up; the verdict says so then.
    """
    ends_at = time.monotonic() + plan.within_s
    directors: list[Director] = []
    striker = Striker(parts, plan, directors, folder / STRIKES, interrupt.wait)

    def struck() -> bool:
        told = sum(len(director.told) for director in directors)
        return told >= plan.runs and all(striker.struck[kind] >= plan.least_hits for kind in Mischief)

    def wanted() -> bool:
        enough = struck() and sum(director.refused for director in directors) >= LEAST_REFUSED
        return not enough and time.monotonic() < ends_at and not interrupt.told

    directors += [Director(parts, name, stories(plan, number), wanted) for number, name in enumerate(plan.names)]
    for director in directors:
        director.start()
    for kind in mischiefs(plan):
        if not wanted() or any(director.error for director in directors):
            break
        striker.strike(Mischief.STOP_EXECUTOR if struck() else kind)
    striker.end()
    _wait_for(directors, interrupt)
    _write_told(directors, folder / TOLD)
    failed = [failure for failure in parts.children.failed() if failure.exit_code != 0]
    if failed:
        raise SluicegateError("\n".join(str(failure) for failure in failed))


def _wait_for(directors: list[Director], interrupt: Interrupt) -> None:
    ends_at = time.monotonic() + _LAST_STORIES_S
    while any(director.is_alive for director in directors):
        interrupt.wait(0.1)
        if time.monotonic() > ends_at:
            late = ", ".join(director.queue for director in directors if director.is_alive)
            raise SluicegateError(f"The last stories of {late} did not end in time.")
    for director in directors:
        if director.error is not None:
            raise SluicegateError(f"The director of {director.queue} failed: {director.error!r}") from director.error


def _write_told(directors: list[Director], path: Path) -> None:
    lines = [
        json.dumps({"queue": director.queue, "story": story, "run": run}) + "\n"
        for director in directors
        for story, run in director.told
    ]
    path.write_text("".join(lines), encoding="utf-8")


def _new_folder(options: RunsOptions) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    folder = options.report_dir / f"torture-runs-{stamp}-{options.runs}-seed{options.seed}"
    folder.mkdir(parents=True)
    return folder
