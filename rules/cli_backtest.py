"""Parse `sluicegate rules backtest` and wire it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rules.backtest.history import History, Inputs
from rules.backtest.picture import picture_of
from rules.backtest.run import backtest as replayed
from rules.backtest.run import utilization, warm_up_ms
from rules.backtest.shown import backtest_json, backtest_tables
from rules.scope import Scope
from sluicegate.console import AsJson, SettingsFile, refuse_no_folder
from sluicegate.generated import write
from sluicegate.period import NOW, lasting_s, period_ms
from sluicegate.plot import draw
from sluicegate.prometheus import WITHIN_S, Prometheus
from sluicegate.secret_file import read_secret
from sluicegate.settings import load

BACKTEST_EXAMPLE = (
    "Example: sluicegate rules backtest --prometheus-url http://127.0.0.1:9090 --since 7d --plot week.svg"
)

PrometheusUrl = Annotated[str, typer.Option("--prometheus-url", metavar="URL", help="Whose history is read.")]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="File with the bearer token for Prometheus.")
]
Within = Annotated[float, typer.Option("--within", metavar="SECONDS", min=1, help="How long an answer may take.")]
Since = Annotated[str, typer.Option("--since", metavar="TIME", help="From when on: a duration ago, or a time.")]
Until = Annotated[
    str,
    typer.Option("--until", metavar="TIME", help="Until when: a duration ago, or a time such as 2026-03-01T09:00Z."),
]
Step = Annotated[
    str | None,
    typer.Option("--step", metavar="DURATION", help="Look only so often; every evaluation without it, which is exact."),
]
ReadFrom = Annotated[
    Inputs | None,
    typer.Option("--inputs", help="Read the rules' records, or the exporter's metrics; what goes back further else."),
]
Beside = Annotated[
    str | None,
    typer.Option("--beside", metavar="EXPR", help="An expression of yours to compare with utilization's place."),
]
BesideFor = Annotated[str, typer.Option("--beside-for", metavar="DURATION", help="Its `for`.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw it as well.")]


def backtest(
    *,
    prometheus_url: PrometheusUrl,
    settings: SettingsFile = None,
    since: Since = "7d",
    until: Until = NOW,
    step: Step = None,
    inputs: ReadFrom = None,
    beside: Beside = None,
    beside_for: BesideFor = "60s",
    token_file: TokenFile = None,
    within: Within = WITHIN_S,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Replay the alerts over history: when each fired, how long before a missed deadline, and which for nothing."""
    if plot is not None:
        refuse_no_folder("The picture", plot)
    scope = Scope(load(settings))
    period = Period.of(since, until, step)
    tried = utilization(scope, beside, lasting_s("--beside-for", beside_for))
    with asked(prometheus_url, token_file, within) as prometheus:
        history = period.history(prometheus, scope, inputs)
        done = replayed(history, period.from_ms, tried)
        if plot is not None:
            write({plot: draw(picture_of(done, history))})
    for line in [backtest_json(done)] if as_json else backtest_tables(done):
        typer.echo(line)


@contextmanager
def asked(url: str, token_file: Path | None, within_s: float) -> Iterator[Prometheus]:
    """Give the Prometheus behind an address, until the block ends."""
    token = read_secret(token_file, "--token-file") if token_file is not None else None
    with closing(Prometheus(url, token=token, within_s=within_s)) as prometheus:
        yield prometheus


@dataclass(frozen=True, slots=True)
class Period:
    """Hold from when to when a person asks, and how often to look; None looks at every evaluation."""

    from_ms: int
    to_ms: int
    step_ms: int | None

    @classmethod
    def of(cls, since: str, until: str, step: str | None) -> Period:
        """Read what was typed; raises UsageError."""
        step_ms = None if step is None else round(lasting_s("--step", step) * 1000)
        return cls(*period_ms(since, until, datetime.now(UTC)), step_ms)

    def history(self, prometheus: Prometheus, scope: Scope, inputs: Inputs | None) -> History:
        """Find the history of the period, and a little before it, for what is pending when it begins."""
        found = History.find(prometheus, scope, self.from_ms - warm_up_ms(scope.settings), self.to_ms, inputs)
        return found if self.step_ms is None else found.thinned(self.step_ms)
