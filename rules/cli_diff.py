"""Parse `sluicegate rules diff` and wire it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from rules.backtest.comparison import Comparison
from rules.backtest.history import History
from rules.backtest.run import backtest as replayed
from rules.backtest.run import utilization
from rules.cli_backtest import Period, ReadFrom, Since, Step, TokenFile, Until, Within, asked
from rules.difference import Difference, with_values
from rules.difference_shown import comparison_lines, difference_json, difference_lines
from rules.scope import Scope
from sluicegate.console import AsJson, SettingsFile
from sluicegate.errors import UsageError
from sluicegate.period import NOW
from sluicegate.prometheus import WITHIN_S
from sluicegate.records import AlertName
from sluicegate.settings import Settings, load

DIFF_EXAMPLE = "Example: sluicegate rules diff --set thresholds.reject_age_p95_seconds=17"


def diff(
    *,
    settings: SettingsFile = None,
    other: Annotated[
        Path | None, typer.Option("--with", metavar="FILE", help="The settings file to compare with, as they would be.")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A value put over it, or over --settings; repeatable."),
    ] = None,
    over_history: Annotated[
        bool, typer.Option("--backtest", help="Replay both over recorded history as well.")
    ] = False,
    prometheus_url: Annotated[
        str | None, typer.Option("--prometheus-url", metavar="URL", help="Whose history is read, for --backtest.")
    ] = None,
    since: Since = "7d",
    until: Until = NOW,
    step: Step = None,
    inputs: ReadFrom = None,
    token_file: TokenFile = None,
    within: Within = WITHIN_S,
    as_json: AsJson = False,
) -> None:
    """Show what other settings change in the rules, and with --backtest in the pages of the past."""
    if other is None and not given:
        raise UsageError("There is nothing to compare with.", "Name other settings: --with FILE, or --set NAME=VALUE.")
    # Values put over none: both have gone through the same checks, so that 60 and 60.0 are one.
    before = with_values(load(settings), ())
    after = with_values(load(other) if other is not None else before, given or ())
    difference = Difference.between(before, after)
    compared = None
    if over_history:
        if prometheus_url is None:
            raise UsageError("--backtest needs to know whose history.", "Add --prometheus-url URL.")
        if before.queue != after.queue:
            raise UsageError(f"--backtest compares settings of one queue, not {before.queue} and {after.queue}.")
        period = Period.of(since, until, step)
        with asked(prometheus_url, token_file, within) as prometheus:
            compared = compare(period.history(prometheus, Scope(before), inputs), before, after, period.from_ms)
    if as_json:
        typer.echo(difference_json(difference, compared))
        return
    for line in difference_lines(difference):
        typer.echo(line)
    if compared is not None:
        typer.echo("")
        for line in comparison_lines(compared):
            typer.echo(line)


def compare(history: History, before: Settings, after: Settings, from_ms: int) -> Comparison:
    """Replay two settings over one history.

    What the controller had in force then is that of one of the two, so the alert that compares it is left out.
    """
    left_out = frozenset({AlertName.THRESHOLD_DRIFT})
    first = replayed(history, from_ms, utilization(Scope(before)), left_out)
    other = replace(history, scope=Scope(after))
    return Comparison(first, replayed(other, from_ms, utilization(Scope(after)), left_out, known=first))
