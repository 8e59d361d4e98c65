"""What the proxy will do with one request, worked out before it does any of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self


class Stream(StrEnum):
    """Name the direction that a fault acts on."""

    UPSTREAM = "upstream"  # the request: the provider has not been asked yet
    DOWNSTREAM = "downstream"  # the answer: the provider has done the work by then


@dataclass(frozen=True)
class Break:
    """Say that the connection breaks instead of carrying the data of one direction on.

    After `after_s` it is closed, or reset; None waits until the fault is taken away, and closes then.
    """

    stream: Stream
    after_s: float | None
    reset: bool


@dataclass(frozen=True)
class Plan:
    """Hold what happens to one request. The delays come first whatever follows, so that an error comes slow too."""

    request_delay_s: float = 0.0
    answer_delay_s: float = 0.0
    status: int | None = None  # answered instead of asking the provider
    retry_after_s: int | None = None
    broken: Break | None = None

    def breaks(self, stream: Stream) -> bool:
        """Tell whether the connection breaks in this direction."""
        return self.broken is not None and self.broken.stream == stream


class Fault(Protocol):
    """Be one kind of fault with its attributes. `apply` is pure but for the random numbers it is given."""

    @classmethod
    def parse(cls, attributes: Mapping[str, object]) -> Self:
        """Read the attributes, unknown ones aside; raises ValueError with a sentence."""
        ...

    def attributes(self) -> dict[str, int | float | None]:
        """Return the attributes as `parse` reads them."""
        ...

    def apply(self, plan: Plan, stream: Stream, rng: random.Random) -> Plan:
        """Return the plan with this fault in it."""
        ...


def read_int(
    attributes: Mapping[str, object], name: str, default: int = 0, bounds: tuple[int, int] = (0, 3_600_000)
) -> int:
    """Return a whole attribute within its bounds (inclusive); raises ValueError that names it, its value and them."""
    value = attributes.get(name, default)
    low, high = bounds
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"attribute `{name}` is {value!r}, not a whole number from {low} to {high}")
    return value


def read_fraction(attributes: Mapping[str, object], name: str, default: float = 1.0) -> float:
    """Return an attribute from 0 to 1; raises ValueError that names it and its value."""
    value = attributes.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"`{name}` is {value!r}, not a number from 0 to 1")
    return float(value)
