"""The torture on the command line: `sluicegate drill torture`, its callers, and the judging of its logs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from drill import defaults

TORTURE_EXAMPLE = "Example: sluicegate drill torture --jobs 10000 --appendfsync always --seed 7"
CALLER_EXAMPLE = "Example: sluicegate drill caller --plan plan.json --number 0 --log caller-0.jsonl"
JUDGE_EXAMPLE = "Example: sluicegate drill judge drill-report/torture-20260101T120000-always-10000-seed7"


def torture(
    jobs: Annotated[int, typer.Option(min=100, max=100_000, help="How many jobs, each submitted twice.")] = 10_000,
    appendfsync: Annotated[
        str, typer.Option(help="always, or everysec: then each kill of the server loses the last second, too.")
    ] = "always",
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of load and strikes; random unless given.")] = None,
    server: Annotated[str, typer.Option(help="The queue's server: redis, valkey or auto.")] = defaults.SERVER,
    report_dir: Annotated[Path, typer.Option(help="Folder that gets a folder with the logs.")] = defaults.REPORT_DIR,
) -> None:
    """Kill workers and Redis under load, then judge from the callers' and the provider's logs what was kept.

    10,000 jobs take about five minutes. Exit 1 where a promise was broken or nothing was proved.
    """
    # Loaded late: --help needs none of it.
    from drill import command_torture  # noqa: PLC0415 (as above)

    raise typer.Exit(command_torture.run(command_torture.parse(jobs, appendfsync, seed, server, report_dir)))


def caller(
    plan: Annotated[Path, typer.Option(help="The torture's plan.")],
    log: Annotated[Path, typer.Option(help="File that gets a JSON line for all that is sent and answered.")],
    number: Annotated[
        int | None, typer.Option(min=0, help="Which of its callers to be; without it, the one that looks at every job.")
    ] = None,
) -> None:
    """Be one caller of a torture: submit, ask again, write down what was answered; or look at the jobs at the end."""
    from drill.torture.caller import call, look_at_all  # noqa: PLC0415 (loaded late, as above)
    from drill.torture.plan import Plan  # noqa: PLC0415 (as above)

    read = Plan.of(json.loads(plan.read_text(encoding="utf-8")))
    if number is None:
        look_at_all(read, log)
    else:
        asyncio.run(call(read, number, log))


def judge(
    folder: Annotated[Path, typer.Argument(help="Folder of a torture's logs.", show_default=False)],
) -> None:
    """Judge the logs of a torture once more; nothing but the logs is read. Exit 1 where a promise was broken."""
    from drill import command_torture  # noqa: PLC0415 (loaded late, as above)

    raise typer.Exit(command_torture.judge_again(folder))
