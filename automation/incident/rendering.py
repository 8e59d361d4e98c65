"""Render an incident: one page that stands for itself, and the same as Markdown. Pure; all text stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources

import jinja2
from markupsafe import Markup

from automation.incident.gathering import Incident
from automation.incident.picture import picture_of
from automation.incident.words import Table, summary, tables, title
from sluicegate.plot import draw
from sluicegate.printable import words_of


def page(incident: Incident) -> str:
    """Give the report as one HTML page: no script, and nothing from elsewhere."""
    said = title(incident)
    return _template().render(
        title=said,
        summary=summary(incident),
        # The picture escapes its own texts (a test draws hostile ones).
        picture=Markup(draw(picture_of(incident, said))),  # noqa: S704 (as above)
        plotted=bool(incident.recorded.figures),
        missing=incident.recorded.missing,
        tables=tables(incident),
        replay=incident.recorded.replay,
    )


def markdown(incident: Incident) -> str:
    """Give the report as Markdown, without the picture."""
    return "\n".join(_lines(incident)) + "\n"


def _lines(incident: Incident) -> Iterator[str]:
    yield f"# {_plain(title(incident))}"
    yield ""
    yield from (f"- **{name}**: {_plain(value)}" for name, value in summary(incident))
    for said in incident.recorded.missing:
        yield from ("", _plain(said))
    for table in tables(incident):
        yield from ("", f"## {table.heading}", "")
        yield from _table(table)
    yield from ("", "## What a replay of the alerts says of the thresholds", "")
    if incident.recorded.replay:
        yield "```text"
        yield from (line.replace("```", "'''") for line in incident.recorded.replay)
        yield "```"
    else:
        yield "Nothing: no Prometheus has the history of this time."


def _table(table: Table) -> Iterator[str]:
    if not table.rows:
        yield table.says
        return
    yield f"| {' | '.join(table.columns)} |"
    yield "|" + "---|" * len(table.columns)
    for row in table.rows:
        yield f"| {' | '.join(_plain(cell) for cell in row)} |"


# What Markdown or HTML would read as more than a letter, and what forges make a link of.
_SPECIAL = re.compile(r"[\\`*{}\[\]<>!|~@&]|(?<![^\W_])_|_(?![^\W_])|(?<=:)//|(?<=www)\.", re.IGNORECASE)


def _plain(text: str) -> str:
    """Write a text so that it reads as itself: no markup, no link, no line break."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", words_of(text))


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    source = (resources.files(__package__) / "report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source)
