"""Parse `sluicegate rules …` and wire it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rules.generate import catalogue, render_all, render_pages
from rules.promql import duration
from rules.promtool import run_tests
from sluicegate.console import Check, SettingsFile, command_line, write_generated
from sluicegate.settings import load
from sluicegate.tables import table_lines, terminal_width

app = command_line(
    "Generate Prometheus rules, their tests and Alertmanager routing from the settings.",
    "sluicegate rules generate --settings sluicegate.yaml --out monitoring/",
)

_OUT = Path("rules/generated")
_PAGES = Path("docs/runbooks")


@app.command(epilog="Example: sluicegate rules generate --check")
def generate(
    settings: SettingsFile = None,
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
    check: Check = False,
) -> None:
    """Write the rule file, its unit tests, alertmanager.yml and a page for every alert."""
    loaded = load(settings)
    pages = runbooks or (_PAGES if out == _OUT else out / "runbooks")
    files = {**render_all(loaded, out, bearer_token_file=bearer_token_file), **render_pages(loaded, pages)}
    write_generated(files, check=check, command="sluicegate rules generate")


@app.command("test", epilog="Example: sluicegate rules test --settings sluicegate.yaml")
def run(settings: SettingsFile = None) -> None:
    """Run promtool: check the rules, run the generated unit tests and those written by hand."""
    verdicts = run_tests(load(settings))
    for verdict in verdicts:
        typer.echo(f"{'passed' if verdict.passed else 'FAILED'}: promtool {verdict.name}")
        if not verdict.passed:
            typer.echo(verdict.output)
    if not all(verdict.passed for verdict in verdicts):
        raise typer.Exit(1)


@app.command(epilog="Example: sluicegate rules show")
def show(settings: SettingsFile = None) -> None:
    """List the alerts: when each fires, what Sluicegate does and who is woken."""
    cells = [
        (
            alert.name,
            alert.when,
            duration(alert.for_s),
            duration(alert.keep_firing_for_s),
            alert.action.value,
            alert.severity.value,
        )
        for alert in catalogue(load(settings))
    ]
    for line in table_lines(("alert", "fires when", "for", "kept", "action", "wakes"), cells, terminal_width()):
        typer.echo(line)
