"""Parse `sluicegate rules …` and wire it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rules.certificate import certify, refusals
from rules.certificate_shown import certificate_json, certificate_table
from rules.cli_backtest import BACKTEST_EXAMPLE, backtest
from rules.cli_diff import DIFF_EXAMPLE, diff
from rules.formats import FILES, Format, render_format
from rules.generate import ALERTMANAGER_FILE, catalogue, render_all, render_pages
from rules.lint.check import Surroundings
from rules.lint.checks import CHECKS
from rules.lint.linter import lint
from rules.lint.reference import reference
from rules.mutation.reasons import reason
from rules.mutation.run import LEAST_KILLED, mutate
from rules.promql import duration
from rules.promtool import run_tests
from sluicegate.console import AsJson, Check, SettingsFile, command_line, write_generated
from sluicegate.settings import load
from sluicegate.tables import table_lines, terminal_width

app = command_line(
    "Generate Prometheus rules, their tests and Alertmanager routing from the settings.",
    "sluicegate rules generate --settings sluicegate.yaml --out monitoring/",
)

app.command(epilog=BACKTEST_EXAMPLE)(backtest)
app.command(epilog=DIFF_EXAMPLE)(diff)

_OUT = Path("rules/generated")
_PAGES = Path("docs/runbooks")
Shape = Annotated[Format, typer.Option("--format", help="Who evaluates the rules.")]


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
    shape: Shape = Format.PROMETHEUS,
    check: Check = False,
) -> None:
    """Write the rule file, its unit tests, alertmanager.yml and a page for every alert.

    The unit tests are promtool's, so they come with the Prometheus rule file alone.
    """
    loaded = load(settings)
    pages = runbooks or (_PAGES if out == _OUT else out / "runbooks")
    files = {**render_all(loaded, out, bearer_token_file=bearer_token_file), **render_pages(loaded, pages)}
    if shape is not Format.PROMETHEUS:
        kept = {path: text for path, text in files.items() if path.parent != out or path.name == ALERTMANAGER_FILE}
        files = {out / FILES[shape]: render_format(loaded, shape), **kept}
    write_generated(files, check=check, command="sluicegate rules generate")


@app.command("test", epilog="Example: sluicegate rules test --settings sluicegate.yaml")
def run(
    settings: SettingsFile = None,
    disturbed: Annotated[
        bool,
        typer.Option(
            "--disturbed",
            help="Also let the figures of every alert go wrong: no numbers, an empty page, a page that stands still or"
            " comes no more, a restart, a second exporter, another job's name.",
        ),
    ] = False,
) -> None:
    """Run promtool: check the rules, run the generated unit tests and those written by hand."""
    verdicts = run_tests(load(settings), disturbed=disturbed)
    for verdict in verdicts:
        typer.echo(f"{'passed' if verdict.passed else 'FAILED'}: promtool {verdict.name}")
        if not verdict.passed:
            typer.echo(verdict.output)
    if not all(verdict.passed for verdict in verdicts):
        raise typer.Exit(1)


@app.command("certify", epilog="Example: sluicegate rules certify --settings sluicegate.yaml")
def certified(settings: SettingsFile = None, shape: Shape = Format.PROMETHEUS, as_json: AsJson = False) -> None:
    """Certify how late every page can come, from signal to webhook; exit 1 where too little of a deadline is left."""
    loaded = load(settings)
    certificates = certify(loaded, shape)
    refused = refusals(loaded, certificates)
    lines = certificate_json(loaded, certificates, refused) if as_json else certificate_table(loaded, certificates)
    for line in lines:
        typer.echo(line)
    for refusal in refused:
        typer.echo(refusal.sentence, err=True)
    if refused:
        raise typer.Exit(1)


@app.command("mutate", epilog="Example: sluicegate rules mutate --only QueueAge")
def mutated(
    settings: SettingsFile = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="WORD", help="Alerts whose name holds this word; repeatable.")
    ] = None,
    least: Annotated[
        float, typer.Option("--least", metavar="SHARE", min=0, max=1, help="Exit 1 under this share of killed mutants.")
    ] = LEAST_KILLED,
) -> None:
    """Make every alert wrong in every way we know, run its tests on each, and list what no test notices."""
    score = mutate(load(settings), only or ())
    for mutant in score.survived:
        typer.echo(f"survived: {mutant.alert.name}: {mutant.operator}: {mutant.change}: {reason(mutant)}")
    all_of_them = len(score.killed) + len(score.survived)
    typer.echo(f"{len(score.killed)} of {all_of_them} mutants killed ({score.share:.1%}) in {score.took_s:.0f} s.")
    if score.share < least:
        raise typer.Exit(1)


@app.command(
    "lint", epilog="Example: sluicegate rules lint rules/generated/sluicegate.rules.yml --runbooks docs/runbooks"
)
def linted(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Rule files, judged together.")],
    settings: SettingsFile = None,
    runbooks: Annotated[
        Path | None, typer.Option("--runbooks", metavar="DIR", help="Where the pages lie that runbook_urls lead to.")
    ] = None,
) -> None:
    """Refuse rules that can't fire, fire too late, or wake people for nothing, with exit 1; asks no server."""
    report = lint(files, Surroundings(load(settings), runbooks))
    for one in report.refused:
        typer.echo(f"{one.path}:{one.line}: {one.check}: {one.rule + ': ' if one.rule else ''}{one.text}.")
    for one, why in report.waived:
        typer.echo(f"waived: {one.path}:{one.line}: {one.check}: {one.rule}: {why}")
    if report.refused:
        raise typer.Exit(1)
    typer.echo(f"{len(CHECKS)} checks found nothing to refuse.")


@app.command("lints", epilog="Example: sluicegate rules lints")
def lint_reference() -> None:
    """Print the page about every check, as it stands in docs/reference/lints.md."""
    typer.echo(reference(), nl=False)


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
