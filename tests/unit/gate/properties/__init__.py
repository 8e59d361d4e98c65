"""What must hold for every row of the gate, each a sentence of contract §6 or §7 under a name.

A property gets a row that was seen and says whether it keeps the rule. The words of its docstring are the rule.
"""

from __future__ import annotations

from tests.unit.gate.properties import data, duplicates, hands, loosening, persons, runs, tightening
from tests.unit.gate.properties.registry import Property, Rules

_FILES: tuple[Rules, ...] = (
    loosening.keeps,
    tightening.keeps,
    runs.keeps,
    duplicates.keeps,
    data.keeps,
    hands.keeps,
    persons.keeps,
)

PROPERTIES: dict[str, Property] = {name: each for rules in _FILES for name, each in rules.properties.items()}
