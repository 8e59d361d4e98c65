"""Hold what somebody else's Prometheus said: a value, or why there is none. Pure; `prometheus.py` asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Sample:
    """Hold one query's value, or None with the reason: neither a pass nor a fail."""

    value: float | None
    why: str = ""


# Samples by the text of their query; one that is not among them was not asked.
Evidence = Mapping[str, Sample]
NO_EVIDENCE: Evidence = MappingProxyType({})
NOT_ASKED = Sample(None, "nobody was asked")
NOT_SET = Sample(None, "automation.prometheus_url is not set")
