"""What several checks ask of an expression."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rules.lint.query import Node

COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
OF_COUNTERS = frozenset({"rate", "increase", "irate", "resets"})
OF_GAUGES = frozenset({"deriv", "delta", "idelta", "predict_linear"})
_COUNTER = re.compile(r"_(?:total|sum|bucket)$")


def metric_of(name: str) -> str:
    """Give the metric that a record is taken from, `level:metric:operation`, or the name itself."""
    parts = name.split(":")
    return parts[1] if len(parts) == 3 else name


def is_counter(name: str) -> bool:
    """Say whether the name is that of a total which only grows."""
    return bool(_COUNTER.search(metric_of(name)))


def calls(tree: Node, names: frozenset[str]) -> Iterator[Node]:
    """Give the calls of these functions."""
    return (node for node in tree.walk() if node.kind == "call" and node.name in names)


def comparisons(tree: Node) -> Iterator[Node]:
    """Give the comparisons."""
    return (node for node in tree.walk() if node.kind == "binary" and node.name in COMPARISONS)


def label_of(selector: Node, label: str) -> str | None:
    """Give the one value that a selector asks of a label, None where it asks for none or for several."""
    return next((one.value for one in selector.matchers if one.label == label and one.op == "="), None)


def kept_labels(node: Node) -> frozenset[str] | None:
    """Give the labels that a part can still have, None where nothing is known: any."""
    match node.kind:
        case "aggregate" if not node.excluding:
            return frozenset(node.labels or ())
        case "binary" if node.labels is not None and not node.excluding and not node.many and _joins(node):
            return frozenset(node.labels)
        case "binary" | "negative":
            return kept_labels(node.parts[0])
        case "number":
            return frozenset()
        case _:
            return None


def _joins(node: Node) -> bool:
    """Say whether both sides become one: then nothing is left but what they are matched on."""
    return node.name not in ("and", "or", "unless")
