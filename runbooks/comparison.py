"""Name the comparisons that a condition may make."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType

OPERATORS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}
)
