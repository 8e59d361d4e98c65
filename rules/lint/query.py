"""Turn PromQL into a tree of values that checks can walk; promql-parser does the parsing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import promql_parser


@dataclass(frozen=True, slots=True)
class Matcher:
    """Hold one label matcher; `op` is =, !=, =~ or !~."""

    label: str
    op: str
    value: str


@dataclass(frozen=True, slots=True)
class Node:
    """Hold one part of an expression and the parts below it. Parentheses are gone: the tree says what they said.

    `kind` is selector, range, subquery, call, aggregate, binary, negative, number or text; `name` a metric, function or
    operator; `labels` what an aggregation or a matching names, `excluding` whether they are the ones left out.
    """

    kind: str
    name: str = ""
    parts: tuple[Node, ...] = ()
    matchers: tuple[Matcher, ...] = ()
    labels: tuple[str, ...] | None = None
    excluding: bool = False
    many: bool = False
    number: float = 0
    range_s: float = 0

    def walk(self) -> Iterator[Node]:
        """Give this node and all below it, from the top."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def selectors(self) -> Iterator[Node]:
        """Give every selector below."""
        return (node for node in self.walk() if node.kind == "selector")


class NotPromql(ValueError):
    """Say why a text is no expression."""


def parsed(text: str) -> Node:
    """Parse an expression. Raises NotPromql with the parser's words."""
    try:
        return _node(promql_parser.parse(text))
    except ValueError as error:
        raise NotPromql(str(error)) from error


def _node(found: Any) -> Node:  # noqa: ANN401 (the parser ships no types; from here on there are some)
    match type(found).__name__:
        case "ParenExpr":
            return _node(found.expr)
        case "VectorSelector":
            matchers = tuple(Matcher(one.name, _OPS[str(one.op)], one.value) for one in found.matchers.matchers)
            name = found.name or next((one.value for one in matchers if one.label == "__name__"), "")
            return Node("selector", name, matchers=matchers)
        case "MatrixSelector":
            below = (_node(found.vector_selector),)
            return Node("range", parts=below, range_s=found.range.total_seconds())
        case "SubqueryExpr":
            return Node("subquery", parts=(_node(found.expr),), range_s=found.range.total_seconds())
        case "Call":
            return Node("call", found.func.name, tuple(_node(one) for one in found.args))
        case "AggregateExpr":
            return _aggregate(found)
        case "BinaryExpr":
            return _binary(found)
        case "UnaryExpr":
            return Node("negative", parts=(_node(found.expr),))
        case "NumberLiteral":
            return Node("number", number=found.val)
        case _:
            return Node("text", getattr(found, "val", ""))


_OPS = {"MatchOp.Equal": "=", "MatchOp.NotEqual": "!=", "MatchOp.Re": "=~", "MatchOp.NotRe": "!~"}


def _aggregate(found: Any) -> Node:  # noqa: ANN401 (as above)
    parts = tuple(_node(one) for one in (found.expr, found.param) if one is not None)
    modifier = found.modifier
    if modifier is None:
        return Node("aggregate", str(found.op), parts, labels=())
    return Node(
        "aggregate",
        str(found.op),
        parts,
        labels=tuple(modifier.labels),
        excluding=str(modifier.type).endswith("Without"),
    )


def _binary(found: Any) -> Node:  # noqa: ANN401 (as above)
    modifier = found.modifier
    matching = modifier.matching if modifier is not None else None
    return Node(
        "binary",
        str(found.op).lower(),
        (_node(found.lhs), _node(found.rhs)),
        labels=None if matching is None else tuple(matching.labels),
        excluding=matching is not None and str(matching.type).endswith("Exclude"),
        many=modifier is not None and "Many" in str(modifier.card).replace("ManyToMany", ""),
    )
