"""Read the tests of a runbook file; the schema has settled shapes, this settles values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runbooks.conditions import FIGURES
from runbooks.rehearsal_model import Expected, Given, GivenGate, RunbookTest, State, When
from runbooks.values import Duration, sample
from runbooks.where import Where

Fields = Mapping[str, Any]
_EVERY = "5s"


def read_test(fields: Fields, where: Where) -> RunbookTest:
    """Build one test; raises SettingsError naming file, field, value and bound."""
    given, then = fields["given"], fields["then"]
    if ("when" in fields) == ("starts" in then):
        raise where.at("then").refuse(
            dict(then),
            "but a test asks either whether a run starts, or what a step comes to",
            "Write `then: {starts: …}` without a `when`, or `when: {step: …}` without `starts`.",
        )
    return RunbookTest(
        name=fields["name"],
        given=Given(
            webhook=given.get("webhook"),
            metrics=_metrics(given.get("metrics", {}), where.at("given").at("metrics")),
            gate=_gate(given.get("gate", {})),
        ),
        when=_when(fields["when"], where.at("when")) if "when" in fields else None,
        then=Expected(
            starts=then.get("starts"),
            state=State(then["state"]) if "state" in then else None,
            admission=then.get("admission"),
            reason=then.get("reason"),
        ),
    )


def _metrics(fields: Fields, where: Where) -> dict[str, tuple[float | None, ...]]:
    for name, value in fields.items():
        if name not in FIGURES:
            raise where.at(name).refuse(value, "but no such figure exists", f"Figures are {', '.join(FIGURES)}.")
    return {name: _table(value, where.at(name)) for name, value in fields.items()}


def _table(value: float | str | list[float | str], where: Where) -> tuple[float | None, ...]:
    rows = value if isinstance(value, list) else [value]
    numbers = tuple(None if one == "no_data" else float(one) for one in rows)
    if any(number is not None and math.isnan(number) for number in numbers):
        raise where.refuse(value, "and what is no number is written no_data")
    return numbers


def _gate(fields: Fields) -> GivenGate:
    return GivenGate(
        drain_state=fields.get("drain_state", "admit"),
        pin=fields.get("pin"),
        run=fields.get("run"),
        beside=tuple(fields.get("beside", [])),
        kill_switch=fields.get("kill_switch", False),
    )


def _when(fields: Fields, where: Where) -> When:
    every = Duration.read(fields.get("every", _EVERY), where.at("every"))
    after = Duration.read(fields["after"], where.at("after")) if "after" in fields else None
    return When(fields["step"], every.resolve(sample()), after.resolve(sample()) if after is not None else 0.0)
