"""Parse `sluicegate runbooks …` and wire it; nothing here starts or changes a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from runbooks import library
from runbooks.context import Context
from runbooks.evidence import NOT_SET, Evidence
from runbooks.lints import lint
from runbooks.model import Runbook
from runbooks.page import page
from runbooks.plan import plan as plan_run
from runbooks.prometheus import ask
from runbooks.rehearsal import Report, rehearse
from runbooks.show import plan_text, plan_values, runbook_text
from runbooks.start import Heard
from runbooks.verbs.drain import Drain
from runbooks.verbs.step import VerbName
from sluicegate.all_queues import AllQueues, Standing
from sluicegate.console import AsJson, Queue, RedisUrl, SettingsFile, command_line, opened, settings_of
from sluicegate.errors import StoreRejected, UsageError
from sluicegate.run_replies import Asked
from sluicegate.settings import Settings, default_settings, load
from sluicegate.store import Store

app = command_line(
    "List, show, check, plan and document the recoveries. Nothing here starts or changes a run.",
    "sluicegate runbooks plan drain-and-recover --queue default",
)

Name = Annotated[str, typer.Argument(help="The runbook's name.", show_default=False)]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        metavar="FOLDER",
        help="A folder of runbook files, instead of those in force: the shipped ones and the settings' own.",
    ),
]


def _books(folder: Path | None, settings: Settings) -> Mapping[str, Runbook]:
    return library.found(folder, settings.automation.runbook_dir)


def _book(name: str, folder: Path | None, settings: Settings) -> Runbook:
    return library.one_of(_books(folder, settings), name, folder)


@app.command("list", epilog="Example: sluicegate runbooks list")
def list_command(folder: Folder = None, settings: SettingsFile = None, as_json: AsJson = False) -> None:
    """List the runbooks with their digest and what they are for."""
    found = _books(folder, load(settings))
    if as_json:
        rows = [{"name": one.name, "digest": one.digest, "summary": one.summary} for one in found.values()]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(map(len, found))
    for one in found.values():
        typer.echo(f"{one.name:<{width}}  {one.digest}  {one.summary}")


@app.command(epilog="Example: sluicegate runbooks show drain-and-recover --settings sluicegate.yaml")
def show(name: Name, folder: Folder = None, settings: SettingsFile = None) -> None:
    """Show a runbook with the numbers of the settings filled in."""
    loaded = load(settings)
    typer.echo(runbook_text(_book(name, folder, loaded), Context(loaded)))


@app.command(epilog="Example: sluicegate runbooks validate my-runbooks/*.yaml")
def validate(files: Annotated[list[Path], typer.Argument(help="Runbook files.", show_default=False)]) -> None:
    """Check runbook files: form, values, and lints of meaning. Exit 2 if one is refused."""
    refused = 0
    for path in files:
        try:
            runbook = library.read_file(path)
        except UsageError as error:
            typer.echo(str(error), err=True)
            refused += 1
            continue
        findings = lint(runbook)
        for finding in findings:
            typer.echo(f"{finding}\n{finding.hint}", err=True)
        refused += bool(findings)
        if not findings:
            typer.echo(f"{path}: {runbook.name} {runbook.digest} is sound")
    if refused:
        raise typer.Exit(2)


@app.command("test", epilog="Example: sluicegate runbooks test drain-and-recover")
def rehearse_command(
    name: Annotated[str | None, typer.Argument(help="The runbook's name; all of them, if it is not named.")] = None,
    folder: Folder = None,
    settings: SettingsFile = None,
) -> None:
    """Run the tests that stand in the runbooks, by the very gates that a run goes by. Calls and writes nothing.

    Exit 1 where one comes out otherwise than it says, or where a runbook has none.
    """
    loaded = load(settings)
    books = _books(folder, loaded).values() if name is None else [_book(name, folder, loaded)]
    context, failed = Context(loaded), 0
    for book in books:
        reports = rehearse(book, context, library.folder_of(book))
        failed += _reported(book.name, reports)
    if failed:
        raise typer.Exit(1)


def _reported(name: str, reports: tuple[Report, ...]) -> int:
    """Print what each test came to; gives how many came out otherwise, and 1 for a runbook without a test."""
    failed = [report for report in reports if report.differences]
    for report in failed:
        typer.echo(f"FAIL {name}: {report.name}: {'; '.join(report.differences)}", err=True)
    typer.echo(f"{name}: {len(reports) - len(failed)} of {len(reports)} tests pass")
    return len(failed) or not reports


@app.command(epilog="Example: sluicegate runbooks plan drain-and-recover --queue default --json")
def plan(
    name: Name,
    folder: Folder = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    as_json: AsJson = False,
) -> None:
    """Plan a run from live figures: exact changes, gate verdicts now, what a rollback would do. Writes nothing."""
    in_force = settings_of(settings, redis_url, queue)
    runbook = _book(name, folder, in_force)
    with opened(in_force, read_only=True) as store:
        telemetry = store.observe()
        heard = Heard(_asked(store, runbook, Context(in_force)), _standing(in_force))
    planned = plan_run(
        runbook,
        telemetry,
        in_force,
        own_file=settings is not None,
        heard=heard,
        evidence=_evidence(runbook, Context(in_force)),
    )
    if as_json:
        typer.echo(json.dumps(plan_values(planned), indent=2, ensure_ascii=False))
    else:
        typer.echo(plan_text(planned))


def _asked(store: Store, runbook: Runbook, context: Context) -> Asked | None:
    """Ask the queue what it says of such a run; None where its user may read the figures and no more."""
    drain = runbook.step(VerbName.DRAIN)
    keep_s = drain.params.keep_slack_s(context) if drain is not None and isinstance(drain.params, Drain) else 0.0
    try:
        return store.asked(runbook.name, round(keep_s * 1000))
    except StoreRejected:
        return None


def _standing(settings: Settings) -> Standing | None:
    """Ask what holds over all queues; None where the user may not see it."""
    with closing(AllQueues.over(settings, read_only=True)) as everywhere:
        try:
            return everywhere.standing()
        except StoreRejected:
            return None


def _evidence(runbook: Runbook, context: Context) -> Evidence:
    """Ask the settings' Prometheus for what the steps' gates need, each query once."""
    url = context.settings.automation.prometheus_url
    queries = dict.fromkeys(query for step in runbook.steps for query in step.params.queries(context))
    return {query: ask(url, query) if url is not None else NOT_SET for query in queries}


@app.command(epilog="Example: sluicegate runbooks docs drain-and-recover --out docs/runbooks/drain-and-recover.md")
def docs(
    name: Name,
    folder: Folder = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the page there instead of printing it.")] = None,
) -> None:
    """Render a runbook as a page a person can follow."""
    defaults = default_settings()
    text = page(_book(name, folder, defaults), Context(defaults, run_id="RUN"))
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The page {out} cannot be written: {error.strerror}.") from error
