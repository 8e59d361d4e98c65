"""Parse `sluicegate drill …` and wire it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from drill import cli_torture_runs as of_runs
from drill import defaults
from drill.cli_plant import PROVIDER_EXAMPLE, PROXY_EXAMPLE, provider, proxy
from drill.cli_torture import CALLER_EXAMPLE, JUDGE_EXAMPLE, TORTURE_EXAMPLE, caller, judge, torture

EXAMPLE = "Example: sluicegate drill --scenario provider-degradation --profile fast"

app = typer.Typer(
    help="Prove the whole loop on real parts on this machine.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command(epilog=PROVIDER_EXAMPLE)(provider)
app.command(epilog=PROXY_EXAMPLE)(proxy)
app.command(epilog=TORTURE_EXAMPLE)(torture)
app.command(epilog=CALLER_EXAMPLE)(caller)
app.command(epilog=JUDGE_EXAMPLE)(judge)
app.command(epilog=of_runs.TORTURE_EXAMPLE)(of_runs.torture_runs)
app.command(epilog=of_runs.JUDGE_EXAMPLE)(of_runs.judge_runs)
app.command(epilog=of_runs.REPLICA_EXAMPLE)(of_runs.replica)
app.command(epilog=of_runs.MILL_EXAMPLE)(of_runs.mill)
app.command(epilog=of_runs.OUTSIDE_EXAMPLE)(of_runs.outside)


@app.callback(epilog=EXAMPLE)
def drill(
    context: typer.Context,
    *,
    list_scenarios: Annotated[bool, typer.Option("--list", help="List the scenarios and end.")] = False,
    scenario: Annotated[str, typer.Option(help="Which scenario to run.")] = defaults.SCENARIO,
    profile: Annotated[str, typer.Option(help="full, or fast: durations ÷ 5, at most a minute.")] = defaults.PROFILE,
    server: Annotated[str, typer.Option(help="The queue's server: redis, valkey or auto.")] = defaults.SERVER,
    rate: Annotated[
        str | None, typer.Option(help=f"Load, jobs a second, minute or hour; {defaults.RATE} unless given.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option(help="Shortest length of the load, such as 180s; never shorter than the scenario.")
    ] = None,
    mix: Annotated[
        str | None, typer.Option(help=f"Classes of the load with their weights; {defaults.MIX} unless given.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of load and faults; random unless given.")] = None,
    report_dir: Annotated[Path, typer.Option(help="Folder that gets a folder with the report.")] = defaults.REPORT_DIR,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the data folder (logs, settings, snapshots).")] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove the folders that killed or kept drills left, and end.")
    ] = False,
) -> None:
    """Prove the whole loop on real parts on this machine: load, faults, alert, run, recovery, verdict."""
    if context.invoked_subcommand is not None:
        return
    # Loaded late: the drill's own servers and --help need none of it.
    from drill import command  # noqa: PLC0415 (as above)

    if list_scenarios:
        command.show_scenarios()
    elif clean:
        command.clean(report_dir)
    else:
        words = command.Words(scenario, profile, server, rate, duration, mix, seed, keep, report_dir)
        raise typer.Exit(command.run(command.parse(words)))


if __name__ == "__main__":
    app()
