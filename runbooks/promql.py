"""Read and judge a condition on somebody else's figures: a PromQL query with one answer, and a bound. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import promql_parser

from runbooks.comparison import OPERATORS
from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, NOT_ASKED, Evidence
from runbooks.quantity import plain
from runbooks.templates import render
from runbooks.values import refused_on_trial, sample
from runbooks.verdict import CheckResult, compared
from runbooks.where import Where
from sluicegate.errors import SettingsError
from sluicegate.telemetry import Telemetry

_FORM = re.compile(r"(?P<op>>=|<=|==|>|<) *(?P<bound>\S.*)", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{1,9})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Query:
    """Hold a query and what its one value must be; no answer, NaN, none or two series say nothing."""

    promql: str
    op: str
    bound: str

    @classmethod
    def read(cls, fields: Mapping[str, str], where: Where) -> Query:
        """Take a query from a file; raises SettingsError with file, field, value and bound."""
        match = _FORM.fullmatch(fields["holds"])
        if match is None:
            raise where.at("holds").refuse(fields["holds"], "not of the form `op number`", "Write it like `< 0.05`.")
        query = cls(fields["promql"], match["op"], match["bound"])
        refused_on_trial(lambda: query.text(sample()), query.promql, where.at("promql"))
        refused_on_trial(lambda: query._limit(sample()), fields["holds"], where.at("holds"))
        return query

    def text(self, context: Context) -> str:
        """Give the query as it is asked; raises ValueError where it is no PromQL."""
        text = render(self.promql, context)
        try:
            promql_parser.parse(text)
        except ValueError as error:
            raise ValueError(f"which is not PromQL: {' '.join(str(error).split())}") from error
        return text

    def check(self, telemetry: Telemetry, context: Context, evidence: Evidence = NO_EVIDENCE) -> CheckResult:
        """Compare what was answered with the bound."""
        try:
            limit, text = self._limit(context), self.text(context)
        except ValueError as error:
            raise SettingsError(f"The runbook's query {self.promql!r} cannot be used here: {error}.") from error
        found = evidence.get(text, NOT_ASKED)
        bound = f"{self.op} {plain(limit)}"
        return compared(text, found.value, bound, lambda value: OPERATORS[self.op](value, limit), found.why)

    def worded(self, context: Context) -> str:
        """Write the query with its bound filled in."""
        return f"{self.text(context)} {self.op} {plain(self._limit(context))}"

    def queries(self, context: Context) -> tuple[str, ...]:
        return (self.text(context),)

    def _limit(self, context: Context) -> float:
        text = render(self.bound, context)
        if _NUMBER.fullmatch(text) is None:
            raise ValueError("not a plain number")
        return float(text)
