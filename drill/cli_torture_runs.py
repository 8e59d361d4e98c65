"""The torture of runs on the command line: `sluicegate drill torture-runs`, its judge, and its own processes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from drill import defaults

TORTURE_EXAMPLE = "Example: sluicegate drill torture-runs --runs 200 --queues 10 --seed 7"
JUDGE_EXAMPLE = "Example: sluicegate drill judge-runs drill-report/torture-runs-20260101T120000-200-seed7"
REPLICA_EXAMPLE = "Example: sluicegate drill replica --settings mill-0.yaml --settings mill-1.yaml"
MILL_EXAMPLE = "Example: sluicegate drill mill --settings mill-0.yaml --name mill"
OUTSIDE_EXAMPLE = "Example: sluicegate drill outside --port 8090 --log outside.jsonl"
SettingsFiles = Annotated[list[Path], typer.Option("--settings", help="A queue's settings; repeat for more.")]


def torture_runs(
    runs: Annotated[int, typer.Option(min=1, max=2000, help="How many runs must end.")] = 200,
    queues: Annotated[int, typer.Option(min=1, max=20, help="On how many queues at once.")] = 10,
    within: Annotated[int, typer.Option(min=30, max=3600, help="Seconds after which no new run begins.")] = 1200,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of stories and strikes; random unless given.")] = None,
    server: Annotated[str, typer.Option(help="The queue's server: redis, valkey or auto.")] = defaults.SERVER,
    report_dir: Annotated[Path, typer.Option(help="Folder that gets a folder with the records.")] = defaults.REPORT_DIR,
) -> None:
    """Kill and stop executors, servers and messengers under many runs, then judge their journals.

    200 runs take some 5 minutes on two cores. Exit 1 where a promise was broken or nothing was proved.
    """
    # Loaded late: --help needs none of it.
    from drill import command_torture_runs as command  # noqa: PLC0415 (as above)

    raise typer.Exit(command.run(command.parse(runs, queues, within, seed, server, report_dir)))


def judge_runs(
    folder: Annotated[Path, typer.Argument(help="Folder of a torture's records.", show_default=False)],
) -> None:
    """Judge the records of a torture of runs once more; nothing else is read. Exit 1 where a promise was broken."""
    from drill import command_torture_runs as command  # noqa: PLC0415 (loaded late, as above)

    raise typer.Exit(command.judge_again(folder))


def replica(settings: SettingsFiles) -> None:
    """Serve one automation service for each of many queues, as one process that can be killed."""
    from drill.runs_torture.hosts import host_automation  # noqa: PLC0415 (loaded late, as above)
    from sluicegate import logs  # noqa: PLC0415 (as above)
    from sluicegate.settings import load  # noqa: PLC0415 (as above)

    logs.configure()
    asyncio.run(host_automation([load(path) for path in settings]))


def mill(settings: SettingsFiles, name: Annotated[str, typer.Option(help="Prefix of the workers' names.")]) -> None:
    """Work on each of many queues, as one process."""
    from drill.runs_torture.hosts import host_workers  # noqa: PLC0415 (loaded late, as above)
    from sluicegate import logs  # noqa: PLC0415 (as above)
    from sluicegate.settings import load  # noqa: PLC0415 (as above)

    logs.configure()
    asyncio.run(host_workers([load(path) for path in settings], name))


def outside(
    log: Annotated[Path, typer.Option(help="File that gets a line for each call of a hook and each notification.")],
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on loopback; 0 takes a free one.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the postman's choices.")] = 0,
) -> None:
    """Be the world outside of tortured queues: provider, hook, probe and postman."""
    from drill.runs_torture.outside import serve_outside  # noqa: PLC0415 (loaded late, as above)

    serve_outside(log, seed, port)
