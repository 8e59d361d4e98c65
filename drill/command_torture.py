"""Do what `sluicegate drill torture` and `drill judge` were asked for: read the options, run, print the verdict."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

from drill.options import check_writable, parse_choice
from drill.server import AppendFsync, ServerKind
from drill.torture.run import VERDICT, TortureOptions, judge_folder, plan_of, run_torture
from drill.torturing import told, tortured
from sluicegate.errors import UsageError

_SEEDS = 1_000_000


def parse(jobs: int, appendfsync: str, seed: int | None, server: str, report_dir: Path) -> TortureOptions:
    """Read the words; raises UsageError for the first that can't be used."""
    fsync = parse_choice("--appendfsync", appendfsync, AppendFsync)
    if fsync is AppendFsync.NO:
        raise UsageError("--appendfsync 'no' is not tortured: it promises nothing.", "Choose one of always, everysec.")
    return TortureOptions(
        jobs=jobs,
        seed=random.randrange(_SEEDS) if seed is None else seed,
        loses=fsync is AppendFsync.EVERY_SECOND,
        server=parse_choice("--server", server, ServerKind),
        report_dir=check_writable(report_dir),
    )


def run(options: TortureOptions) -> int:
    """Run one torture, print its verdict, and return the exit code; a signal ends it tidily, without a verdict."""
    plan = plan_of(options)
    print(f"torture: {plan.jobs} jobs in {plan.lasts_s:.0f} s, seed {plan.seed}", flush=True)
    return tortured(partial(run_torture, options), VERDICT)


def judge_again(folder: Path) -> int:
    """Judge a folder of logs and print the verdict; returns the exit code."""
    return told(folder, judge_folder(folder), VERDICT)
