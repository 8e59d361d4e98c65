"""Write docs/reference/settings.md from the declared settings: every one with its default and its bound."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import cast, get_args

from pydantic import BaseModel

from sluicegate.policy import Thresholds
from sluicegate.setting_rows import bound, default, text
from sluicegate.settings import ENVIRONMENT, Settings

_HEAD = """# Settings

Generated from the code by `make generate`; edit the declarations in `sluicegate/`, not this page.

One YAML file holds them all, and every setting has a default but `contract.classes` and the deadlines in it. The names
below are paths in that file: `contract.timings.tick_s` is `tick_s` inside `timings` inside `contract`. A name that is
not here is refused. `sluicegate queue settings --settings FILE` lists them with what your file and environment make of
them and with what is in force.

The section `contract` takes effect only through `sluicegate queue init` and `sluicegate queue apply`, which store it in
Redis for every client alike. Its durations are from 1 ms to 10 years. Everything else is as the process that reads the
file has it.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """Hold one setting as text: its path in the file, its default, its bound and what it is for."""

    name: str
    default: str
    bound: str
    says: str


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """Hold one section of the page: its path in the file, what it is, and its settings."""

    path: str
    says: str
    rows: tuple[Row, ...]


def reference() -> str:
    """Give the whole page as Markdown."""
    return "\n".join([_HEAD, *(_section(section) for section in sections()), _environment()])


def sections(model: type[BaseModel] = Settings, path: str = "") -> Iterator[Section]:
    """Give every section in the order of the file; a name that the user chooses stands as `{name}`."""
    rows: list[Row] = []
    below: list[tuple[type[BaseModel], str]] = []
    thresholds: list[Section] = []
    for name, info in model.model_fields.items():
        here = f"{path}.{name}" if path else name
        if info.annotation is Thresholds:
            thresholds.append(_thresholds(here))
        elif _is_model(info.annotation):
            below.append((cast("type[BaseModel]", info.annotation), here))
        else:
            rows.append(Row(here, default(info), bound(info), info.description or ""))
            below += [(kind, f"{here}.{{name}}") for kind in get_args(info.annotation) if _is_model(kind)]
    yield Section(path, model.__doc__ or "", tuple(rows))
    yield from thresholds
    for kind, here in below:
        yield from sections(kind, here)


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _thresholds(path: str) -> Section:
    rows = tuple(
        Row(f"{path}.{field.name}", text(field.default), field.metadata["bound"], field.metadata["says"])
        for field in dataclasses.fields(Thresholds)
    )
    return Section(path, Thresholds.__doc__ or "", rows)


def _section(section: Section) -> str:
    lines = [f"## {section.path or 'At the top'}", "", *(line.strip() for line in section.says.splitlines())]
    lines += ["", "| setting | default | bound | what it says |", "|---|---|---|---|"]
    lines += [_cells(f"`{row.name}`", _code(row.default), _code(row.bound), row.says) for row in section.rows]
    return "\n".join([*lines, ""])


def _environment() -> str:
    by_name: dict[str, list[str]] = {}
    for place, name in ENVIRONMENT.items():
        by_name.setdefault(name, []).append(f"`{'.'.join(place)}`")
    lines = [
        "## The environment",
        "",
        "These names beat the file, under the same bounds; a flag of a command beats both.",
        "",
        "| name | setting |",
        "|---|---|",
        *(_cells(f"`{name}`", ", ".join(places)) for name, places in by_name.items()),
    ]
    return "\n".join([*lines, ""])


def _code(value: str) -> str:
    return f"`{value}`" if value and value not in ("—", "required") else value


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(reference(), end="")
