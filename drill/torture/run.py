"""Run one torture from the first process to the verdict; its logs stay in the report's folder."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drill.checker.logs import BadLog, read_logs
from drill.checker.verdict import Demands, Verdict, judge
from drill.children import Children
from drill.interrupt import Interrupt
from drill.server import ServerKind
from drill.torture.conductor import Conductor, Deeds
from drill.torture.onlooker import Onlooker
from drill.torture.parts import Parts
from drill.torture.plan import Plan, StrikeKind, strikes
from sluicegate.errors import SluicegateError, UsageError

DEMANDS, VERDICT = "demands.json", "verdict.json"
# From the start of the callers to the first submission: as long as it takes until all of them are there.
_CALLERS_START_S = 2.0
RATE_PER_S = 50.0
_SHORT_RATE_PER_S = 40.0
_SHORT_JOBS = 1000


@dataclass(frozen=True, slots=True)
class TortureOptions:
    """Hold what a person asks for. loses: appendfsync everysec, and what was not forced to the disk is lost."""

    jobs: int
    seed: int
    loses: bool
    server: ServerKind
    report_dir: Path


def plan_of(options: TortureOptions) -> Plan:
    """Give the plan; short ones have fewer processes and less time."""
    short = options.jobs < _SHORT_JOBS
    return Plan(
        jobs=options.jobs,
        seed=options.seed,
        rate_per_s=_SHORT_RATE_PER_S if short else RATE_PER_S,
        callers=2 if short else 3,
        workers=2 if short else 4,
        loses=options.loses,
        settles_within_s=35.0 if short else 60.0,
    )


def demands_of(plan: Plan) -> Demands:
    """Say what a plan must come to: every kill that it plans, and enough jobs done for them to matter.

    While a loss is watched nothing is admitted, and a short run on a busy machine closes its gate for much of its time.
    """
    planned = [strike.kind for strike in strikes(plan)]
    least = 0.5 if plan.jobs >= _SHORT_JOBS else 0.3
    return Demands(
        durable=not plan.loses,
        worker_kills=planned.count(StrikeKind.KILL_WORKER),
        server_kills=planned.count(StrikeKind.KILL_SERVER),
        loses_gate=plan.loses,
        least_succeeded=least / 2 if plan.loses else least,
    )


def run_torture(options: TortureOptions, interrupt: Interrupt) -> tuple[Path, Verdict]:
    """Start every part, strike, end every part, and judge what the logs say; gives the logs' folder and the verdict."""
    plan = plan_of(options)
    folder = _new_folder(options)
    (folder / DEMANDS).write_text(json.dumps(asdict(demands_of(plan))), encoding="utf-8")
    children = Children()
    try:
        children.start()
        _strike(Parts(children, options.server, plan, folder), interrupt)
    finally:
        children.stop()
    return folder, judge_folder(folder)


def judge_folder(folder: Path) -> Verdict:
    """Judge the logs of a run that has ended, and keep the verdict beside them; raises UsageError without a run."""
    try:
        raw: dict[str, Any] = json.loads((folder / DEMANDS).read_text(encoding="utf-8"))
        verdict = judge(read_logs(folder), Demands(**raw))
    except (OSError, ValueError, TypeError, BadLog) as error:
        raise UsageError(
            f"{folder} can't be judged: {error}", "Name the folder of a torture that ran to its end."
        ) from error
    (folder / VERDICT).write_text(json.dumps(verdict.as_json(), indent=1) + "\n", encoding="utf-8")
    return verdict


def _strike(parts: Parts, interrupt: Interrupt) -> None:
    """Run a plan on its parts, with somebody looking all the time."""
    interrupt.check()
    parts.start()
    data = parts.server.folder
    if data is None:
        raise SluicegateError("The torture's server has no folder.")
    onlooker = Onlooker(parts.store, parts.folder / "gate.jsonl", data)
    onlooker.start()
    try:
        plan = replace(parts.plan, starts_at=time.time() + _CALLERS_START_S)
        callers = parts.start_callers(plan)
        Conductor(parts, plan, onlooker, Deeds(parts.folder / "deeds.jsonl"), interrupt.wait).run(callers)
        failed = [failure for failure in parts.children.failed() if failure.exit_code != 0]
        if failed:
            raise SluicegateError("\n".join(str(failure) for failure in failed))
    finally:
        onlooker.stop()
        parts.close()


def _new_folder(options: TortureOptions) -> Path:
    mode = "everysec" if options.loses else "always"
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    folder = options.report_dir / f"torture-{stamp}-{mode}-{options.jobs}-seed{options.seed}"
    folder.mkdir(parents=True)
    return folder
