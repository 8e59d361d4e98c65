"""Say why no test notices a mutant: because it is no other rule, or because nobody has written the test yet."""

from __future__ import annotations

import re

from rules.mutation.mutants import Mutant
from sluicegate import records

UNKNOWN = "no test tells the two apart yet"
_PRESENCE = "only whether the figure is there counts, not what it says"
_ZERO = "counts add up to nothing only where the highest of them is nothing"
_VANISHED = "readings that stand still add up to less when one vanishes, but for less time than `for` or a keep"
_SLOPE = "what is computed from a measured slope never meets its bound exactly"
_ENDLESS = "it never ends, so nothing is kept"


def reason(mutant: Mutant) -> str:
    """Give the reason why a mutant survives."""
    alert = mutant.alert
    if mutant.record is not None:
        return _of_a_record(mutant)
    if mutant.operator == "comparator" and mutant.change.startswith("< to <= ") and "deriv(" in alert.expression:
        return _SLOPE
    if mutant.operator == "keep" and alert.expression == "vector(1)":
        return _ENDLESS
    return UNKNOWN


def _of_a_record(mutant: Mutant) -> str:
    record, operation = mutant.record or (records.SNAPSHOT, "")
    read = re.findall(rf"{record.name}\{{[^}}]*\}}(?P<after>[^\n]*)", mutant.alert.expression)
    # Compared with itself a figure is there, or it is no number.
    itself = rf"(?: == {record.name}\{{[^}}]*\}})?\)*"
    if all(re.fullmatch(itself, after) for after in read):
        return _PRESENCE
    if operation == "sum" and all(re.match(r"\)* (?:==|>) 0$", after) for after in read):
        return _ZERO
    if operation == "sum" and record is records.SNAPSHOT and mutant.alert.for_s:
        return _VANISHED
    return UNKNOWN
