"""`sluicegate rules`: generate, test and show the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table

from rules.generate import catalogue, render_all, render_pages
from rules.promql import duration
from rules.promtool import run_tests
from sluicegate.generated import outdated, write
from sluicegate.settings import load

app = typer.Typer(
    help="Generate Prometheus rules, their tests and Alertmanager routing from the settings.",
    epilog="Example: sluicegate rules generate --settings sluicegate.yaml --out monitoring/",
    no_args_is_help=True,
    add_completion=False,
)

_OUT = Path("rules/generated")
_PAGES = Path("docs/runbooks")

SettingsOption = Annotated[
    Path | None, typer.Option("--settings", metavar="FILE", help="Settings file; without one the drill's settings.")
]


@app.command(epilog="Example: sluicegate rules generate --check")
def generate(
    settings: SettingsOption = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where rules, tests and routing go.")] = _OUT,
    runbooks: Annotated[
        Path | None,
        typer.Option(
            "--runbooks",
            metavar="DIR",
            help=f"Where the runbook pages go: {_PAGES}, or `runbooks` inside --out where that is given.",
        ),
    ] = None,
    bearer_token_file: Annotated[
        Path | None,
        typer.Option(
            "--bearer-token-file", metavar="FILE", help="The file with the webhook's token, for Alertmanager."
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when a file is out of date.")] = False,
) -> None:
    """Write the rule file, its unit tests, alertmanager.yml and a page for every alert."""
    loaded = load(settings)
    pages = runbooks or (_PAGES if out == _OUT else out / "runbooks")
    files = {**render_all(loaded, out, bearer_token_file=bearer_token_file), **render_pages(loaded, pages)}
    changed = outdated(files) if check else write(files)
    for path in changed:
        typer.echo(f"{'out of date' if check else 'written'}: {path}")
    if check and changed:
        typer.echo("`sluicegate rules generate` with the same options writes them anew.", err=True)
        raise typer.Exit(1)
    typer.echo(f"{len(files) - len(changed)} of {len(files)} files were up to date.")


@app.command("test", epilog="Example: sluicegate rules test --settings sluicegate.yaml")
def run(settings: SettingsOption = None) -> None:
    """Run promtool: check the rules, run the generated unit tests and those written by hand."""
    verdicts = run_tests(load(settings))
    for verdict in verdicts:
        typer.echo(f"{'passed' if verdict.passed else 'FAILED'}: promtool {verdict.name}")
        if not verdict.passed:
            typer.echo(verdict.output)
    if not all(verdict.passed for verdict in verdicts):
        raise typer.Exit(1)


@app.command(epilog="Example: sluicegate rules show")
def show(settings: SettingsOption = None) -> None:
    """List the alerts: when each fires, what Sluicegate does and who is woken."""
    alerts = catalogue(load(settings))
    # A name that is cut short can't be searched for.
    name = Column("alert", no_wrap=True, min_width=max(len(alert.name) for alert in alerts))
    table = Table(name, "fires when", "for", "kept", Column("action", no_wrap=True), "wakes", box=SIMPLE)
    for alert in alerts:
        table.add_row(
            alert.name,
            alert.when,
            duration(alert.for_s),
            duration(alert.keep_firing_for_s),
            alert.action.value,
            alert.severity.value,
        )
    Console().print(table)
