"""Do what `sluicegate drill torture-runs` and `drill judge-runs` were asked for: run, judge, print."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

from drill.monitoring import find_alertmanager, find_prometheus
from drill.options import check_writable, parse_choice
from drill.runs_torture.run import VERDICT, RunsOptions, judge_folder, run_torture
from drill.server import ServerKind, find_server
from drill.torturing import told, tortured

_SEEDS = 1_000_000


def parse(runs: int, queues: int, within_s: int, seed: int | None, server: str, report_dir: Path) -> RunsOptions:
    """Read the words; raises UsageError for the first that can't be used, or where a program is missing."""
    kind = parse_choice("--server", server, ServerKind)
    find_server(kind)
    find_prometheus()
    find_alertmanager()
    chosen = random.randrange(_SEEDS) if seed is None else seed
    return RunsOptions(runs, queues, chosen, float(within_s), kind, check_writable(report_dir))


def run(options: RunsOptions) -> int:
    """Run one torture, print its verdict, and return the exit code; a signal ends it tidily, without a verdict."""
    print(f"torture: {options.runs} runs on {options.queues} queues, seed {options.seed}", flush=True)
    return tortured(partial(run_torture, options), VERDICT)


def judge_again(folder: Path) -> int:
    """Judge a folder of records and print the verdict; returns the exit code."""
    return told(folder, judge_folder(folder), VERDICT)
