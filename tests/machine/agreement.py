"""Compare what came with what was expected, naming what is compared."""

from __future__ import annotations


def agree(actual: object, expected: object, what: str) -> None:
    assert actual == expected, f"{what}: got {actual!r}, expected {expected!r}"
