"""Fill the templates: what is undefined is an error, and every string is quoted."""

from __future__ import annotations

import json
import re
import textwrap

import jinja2

from rules.promql import duration

_WIDTH = 120


def quoted(text: str) -> str:
    """Quote a string for YAML: a JSON string is one, and `no` or `1` stay strings."""
    return json.dumps(text, ensure_ascii=False)


def single_quoted(text: str) -> str:
    """Quote a string that holds double quotes itself, as a series does."""
    return "'" + text.replace("'", "''") + "'"


def spoken(text: str) -> str:
    """Turn the placeholders of an annotation into words for a page, which is about every alert of the name."""
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"«\1»", text)


def wrap(text: str) -> str:
    """Break a paragraph into lines for a page that people also read as a file."""
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def render(template: str, **values: object) -> str:
    """Render one of this part's templates."""
    # Nothing here is HTML: escaping would turn a comparison in PromQL into an entity.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rules"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 (as above)
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(quoted=quoted, squoted=single_quoted, duration=duration, wrap=wrap, spoken=spoken)
    return environment.get_template(template).render(**values)
