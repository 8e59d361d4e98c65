"""Take what a worker must obey out of the stored contract, so that every worker of a queue goes by the same bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.errors import StoreRejected
from sluicegate.job import RetryRules


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """Hold the retry rules and the lease (seconds) of one contract, known by its digest."""

    digest: str
    retry: RetryRules
    lease_s: float

    @property
    def renew_every_s(self) -> float:
        """Give a third of the lease (contract §4)."""
        return self.lease_s / 3


def rules_of(stored: Mapping[str, str]) -> WorkerRules | None:
    """Read `Store.settings()`; None for a queue without a contract, StoreRejected for one that is not readable."""
    if "contract" not in stored:
        return None
    try:
        contract = json.loads(stored["contract"])
        timings = contract["timings"]
        retry = RetryRules(
            margin_s=timings["margin_ms"] / 1000,
            call_timeout_max_s=timings["call_timeout_max_ms"] / 1000,
            call_timeout_min_s=timings["call_timeout_min_ms"] / 1000,
            call_reserve_s=timings["call_reserve_ms"] / 1000,
            backoff_first_s=timings["backoff_first_ms"] / 1000,
            backoff_max_s=timings["backoff_max_ms"] / 1000,
        )
        return WorkerRules(stored.get("digest", ""), retry, contract["lease_ms"] / 1000)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreRejected(f"The stored contract can't be read: {type(error).__name__} {error}.") from error
