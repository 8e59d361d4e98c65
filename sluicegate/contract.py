"""What must two clients of a queue agree on? Limits, classes, thresholds and timings, under one digest."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self, get_type_hints

from pydantic import Field, field_validator, model_validator

from sluicegate.job import Effects
from sluicegate.policy import Thresholds
from sluicegate.section import NAME, Section, refuse_switches, seconds
from sluicegate.submission import MAX_CLASS, MAX_PAYLOAD_BYTES
from sluicegate.timings import Timings, check_pairs

# The functions count in whole ms, and Redis takes no expiry of 0; far ahead, their instants are no exact numbers.
_SHORTEST_S = 0.001
_LONGEST_S = 10 * 365 * 86_400
# More would take longer to reopen than people wait for one step.
MOST_RAMP_STEPS = 10
# Beyond it counts in Redis, and instants made with it, are no exact numbers any more.
_MOST = 10**12
_LEAST_SHARE = 1e-6


class Dispatch(StrEnum):
    """Name which job is claimed next; a setting of the contract."""

    FIFO = "fifo"  # the one that has been eligible for longest
    EDF = "edf"  # the one whose deadline comes first


class ClassSettings(Section):
    """Declare one class of jobs: its deadline in seconds, what a repeated call does, and its canary."""

    deadline_s: float = Field(gt=0, description="Time from submission to the deadline, unless the caller names one.")
    effects: Effects = Field(
        default=Effects.KEYED,
        description="What a repeated call does: nothing (none), nothing twice under one key (keyed), harm (unsafe).",
    )
    cost_class: str | None = Field(
        default=None, pattern=NAME, description="The costly resource that it shares; one of `cost_classes`."
    )
    max_pending: int | None = Field(default=None, ge=1, description="Jobs of it that may wait; none: no limit.")
    max_running: int | None = Field(default=None, ge=1, description="Jobs of it that may run at once; none: no limit.")
    expected_service_s: float | None = Field(
        default=None,
        gt=0,
        description="Mean time of its calls until enough were seen (with `backlog_limit`); none: the contract's.",
    )
    share: float = Field(
        default=1.0, gt=0, description="Its share of the workers beside the other classes' (with `backlog_limit`)."
    )
    canary: dict[str, Any] | None = Field(
        default=None, description="The harmless payload that proves the path; without one it proves nothing."
    )

    @field_validator("canary")
    @classmethod
    def _check_canary(cls, payload: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            size = len(json.dumps(payload, allow_nan=False))
        except (TypeError, ValueError) as error:
            # YAML knows dates and more: in quotes they are text.
            raise ValueError(f"canary is no JSON: {error}") from error
        if size > MAX_PAYLOAD_BYTES:
            raise ValueError(f"canary has {size} bytes as JSON, more than {MAX_PAYLOAD_BYTES}")
        return payload


class CostClassSettings(Section):
    """Limit what shares one costly resource, such as a browser."""

    max_pending: int | None = Field(default=None, ge=1, description="Jobs of it that may wait; none: no limit.")
    max_running: int | None = Field(default=None, ge=1, description="Jobs of it that may run at once; none: no limit.")


class Contract(Section):
    """Hold what two clients must agree on; stored in Redis with a digest, read there by the functions."""

    max_pending: int | None = Field(
        default=None,
        ge=1,
        description="Jobs that may wait; none: capacity × half the shortest deadline, at most 10,000.",
    )
    max_running: int = Field(default=6, ge=1, description="Jobs that may run at once, over all workers.")
    lease_ms: int = Field(default=30_000, ge=100, description="How long a worker holds a job without renewing.")
    retry_budget: int = Field(default=5, ge=1, description="Retries until a job is blocked.")
    loss_budget: int = Field(default=2, ge=1, description="Lost leases until a job is blocked as poison.")
    expected_service_s: float = seconds(1.0, "Mean time of one call; capacity is `max_running` ÷ this.")
    strict_classes: bool = Field(default=True, description="Whether an undeclared class is refused.")
    dispatch: Dispatch = Field(
        default=Dispatch.FIFO, description="Which job is next: the longest eligible (fifo), the first deadline (edf)."
    )
    backlog_limit: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description=(
            "A class takes no job whose wait, at its share, leaves it less than a reserve: at 0.7 three tenths of the "
            "shortest class's time; by deadline the shortest class itself may take all slots; none: no limit."
        ),
    )
    classes: dict[str, ClassSettings] = Field(min_length=1, description="The classes of jobs, by name.")
    cost_classes: dict[str, CostClassSettings] = Field(default={}, description="Costly resources, by name.")
    thresholds: Thresholds = Thresholds()
    timings: Timings = Timings()
    canary_required_ok: int = Field(
        default=3, ge=1, description="Canaries in a row that make green; at least one of each class that declares one."
    )
    canary_failures_max: int = Field(default=3, ge=1, description="Failed canaries that roll the run back.")
    burn_down_min_age_fall_s: float = seconds(1, "Age p95 must fall by so much in each window,")
    burn_down_min_backlog_fall: float = Field(
        default=0.10, gt=0, lt=1, description="or the kept backlog by this share of its size at green."
    )
    ramp_percents: tuple[int, ...] = Field(
        default=(10, 50, 100), description="Shares of new work while the gate reopens; they grow and end at 100."
    )
    prediction_min_completions: int = Field(
        default=20, ge=1, description="Completions in the window without which no wait is predicted."
    )
    runs_per_hour: int = Field(default=3, ge=1, description="Runs an hour that no named person asked for.")
    concurrent_runs: int = Field(
        default=2,
        ge=1,
        description="With so many runs live over all queues of a server, no alert or timer opens one.",
    )
    storm_queues: int = Field(
        default=5,
        ge=2,
        description="So many queues that ask for runs within `storm_window_s` trip the breaker of all.",
    )

    @field_validator("thresholds", mode="before")
    @classmethod
    def _check_threshold_switches(cls, body: object) -> object:
        if isinstance(body, Mapping):
            refuse_switches(get_type_hints(Thresholds), body)
        return body

    @model_validator(mode="after")
    def _check_across_fields(self) -> Self:
        names = list(self.classes) + list(self.cost_classes)
        for name in names:
            if not _is_name(name):
                raise ValueError(f"class {name!r} must match {NAME}")
            if len(name) > MAX_CLASS:
                raise ValueError(f"class {name[:MAX_CLASS]}… has {len(name)} characters, more than {MAX_CLASS}")
        if "other" in self.classes or "canary" in self.classes:
            raise ValueError("classes 'other' and 'canary' are reserved")
        for name, declared in self.classes.items():
            if declared.cost_class is not None and declared.cost_class not in self.cost_classes:
                raise ValueError(f"class {name!r} names the cost_class {declared.cost_class!r}, which is not declared")
            if declared.deadline_s <= self.timings.margin_s:
                raise ValueError(
                    f"deadline_s of class {name!r} is {declared.deadline_s:g}, not above the margin_s of "
                    f"{self.timings.margin_s:g}"
                )
        _check_thresholds(self.thresholds)
        _check_durations(self)
        _check_counts(self.model_dump(exclude={"classes": {"__all__": {"canary"}}}))
        check_pairs(self.timings)
        if list(self.ramp_percents) != sorted(set(self.ramp_percents)) or self.ramp_percents[-1:] != (100,):
            raise ValueError("ramp_percents must grow and end at 100")
        if self.ramp_percents[0] < 1:
            raise ValueError("ramp_percents must start at 1 or more")
        if len(self.ramp_percents) > MOST_RAMP_STEPS:
            raise ValueError(f"ramp_percents has {len(self.ramp_percents)} steps, not at most {MOST_RAMP_STEPS}")
        return self

    @property
    def shortest_deadline_s(self) -> float:
        return min(declared.deadline_s for declared in self.classes.values())

    @property
    def capacity_per_s(self) -> float:
        """Give gross capacity in jobs/s: max_running ÷ mean service seconds (contract §5)."""
        return self.max_running / self.expected_service_s

    @property
    def effective_max_pending(self) -> int:
        """Give max_pending, by default min(10,000, capacity × half the shortest deadline) (contract §5)."""
        if self.max_pending is not None:
            return self.max_pending
        return max(1, min(10_000, math.floor(self.capacity_per_s * self.shortest_deadline_s / 2)))

    @property
    def canary_classes(self) -> tuple[str, ...]:
        return tuple(name for name, declared in self.classes.items() if declared.canary is not None)

    @property
    def canaries_required(self) -> int:
        """Give how many canary successes in a row make green (contract §7.5)."""
        return max(self.canary_required_ok, len(self.canary_classes))

    @property
    def proof_s(self) -> float:
        """Give the seconds the proof may take; without a canary it is a person's word, and people take longer."""
        return self.timings.canary_timeout_s if self.canary_classes else self.timings.fix_timeout_s

    def canary_max_latency_s(self, name: str) -> float:
        """Give the slowest canary answer that still counts: deadline ÷ 30, floor 1 s, at most the call's timeout."""
        timings = self.timings
        latency = max(self.classes[name].deadline_s / 30, timings.canary_latency_floor_s)
        return min(latency, timings.call_timeout_max_s)

    def for_redis(self) -> str:
        """Render the contract as the functions read it: JSON, sorted, durations in whole ms."""
        timings = {key.removesuffix("_s") + "_ms": round(value * 1000) for key, value in self.timings}
        shares = sum(declared.share for declared in self.classes.values())
        classes = {
            name: {
                "deadline_ms": round(declared.deadline_s * 1000),
                "effects": declared.effects.value,
                "cost_class": declared.cost_class or "-",
                "max_pending": declared.max_pending or 0,
                "max_running": declared.max_running or 0,
                # No class is without any: its wait would be no number.
                "share": max(_LEAST_SHARE, round(declared.share / shares, 6)),
                **_expected(declared),
                "canary": _fingerprint(declared.canary),
                "canary_max_latency_ms": round(self.canary_max_latency_s(name) * 1000),
            }
            for name, declared in self.classes.items()
        }
        body = {
            "max_pending": self.effective_max_pending,
            "max_running": self.max_running,
            "lease_ms": self.lease_ms,
            "retry_budget": self.retry_budget,
            "loss_budget": self.loss_budget,
            "expected_service_ms": round(self.expected_service_s * 1000),
            "strict_classes": self.strict_classes,
            "dispatch": self.dispatch.value,
            "backlog_limit": self.backlog_limit or 0,
            "classes": classes,
            "cost_classes": {
                name: {"max_pending": cost.max_pending or 0, "max_running": cost.max_running or 0}
                for name, cost in self.cost_classes.items()
            },
            "thresholds": {key: getattr(self.thresholds, key) for key in Thresholds.__dataclass_fields__},
            "timings": timings,
            "canaries_required": self.canaries_required,
            "canary_failures_max": self.canary_failures_max,
            "burn_down_min_age_fall_ms": round(self.burn_down_min_age_fall_s * 1000),
            "burn_down_min_backlog_fall": self.burn_down_min_backlog_fall,
            "ramp_percents": list(self.ramp_percents),
            "prediction_min_completions": self.prediction_min_completions,
            "runs_per_hour": self.runs_per_hour,
            "concurrent_runs": self.concurrent_runs,
            "storm_queues": self.storm_queues,
        }
        return json.dumps(body, sort_keys=True, separators=(",", ":"))

    def digest(self) -> str:
        """Give the contract's fingerprint: 16 hex digits of the SHA-256 of its rendered form."""
        return hashlib.sha256(self.for_redis().encode()).hexdigest()[:16]


def _expected(declared: ClassSettings) -> dict[str, int]:
    """Give a class's own service time, where it has one: a contract without any keeps its digest."""
    if declared.expected_service_s is None:
        return {}
    return {"expected_service_ms": round(declared.expected_service_s * 1000)}


def _fingerprint(payload: dict[str, Any] | None) -> str:
    """Stand for a canary's payload, so that the digest covers it and no function has to read it; empty for none."""
    if payload is None:
        return ""
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()[:16]


def _check_durations(contract: Contract) -> None:
    durations = {
        "lease_ms": contract.lease_ms / 1000,
        "expected_service_s": contract.expected_service_s,
        "burn_down_min_age_fall_s": contract.burn_down_min_age_fall_s,
        **{f"deadline_s of class {name!r}": declared.deadline_s for name, declared in contract.classes.items()},
        **{
            f"expected_service_s of class {name!r}": declared.expected_service_s
            for name, declared in contract.classes.items()
            if declared.expected_service_s is not None
        },
        **dict(contract.timings),
    }
    for name, lasts_s in durations.items():
        if not _SHORTEST_S <= lasts_s <= _LONGEST_S:
            raise ValueError(f"{name} is {lasts_s:g} s, not from 1 ms to 10 years")


def _check_counts(body: Mapping[str, Any], where: str = "") -> None:
    for name, value in body.items():
        if isinstance(value, Mapping):
            _check_counts(value, f"{where}{name}.")
        elif isinstance(value, int | float) and value > _MOST:
            raise ValueError(f"{where}{name} is {min(value, 10**308):.3g}, more than {_MOST:.0e}")


def _check_thresholds(bounds: Thresholds) -> None:
    for name in ("drain_provider_5xx_rate", "drain_provider_timeout_rate"):
        if not 0 < getattr(bounds, name) <= 1:
            raise ValueError(f"{name} is {getattr(bounds, name):g}, not above 0 and at most 1")
    for name in ("sample_min_calls", "sample_min_failed", "drain_min_failed"):
        if getattr(bounds, name) < 1:
            raise ValueError(f"{name} is {getattr(bounds, name)}, not at least 1")
    ages = (bounds.recovered_age_p95_seconds, bounds.reject_age_p95_seconds, bounds.drain_age_p95_seconds)
    if not 0 < ages[0] < ages[1] < ages[2]:
        raise ValueError(
            "ages must grow from above 0: recovered_age_p95_seconds < reject_age_p95_seconds < drain_age_p95_seconds, "
            f"not {ages[0]:g}, {ages[1]:g}, {ages[2]:g}"
        )
    if not 0 <= bounds.reject_slack_p10_seconds < bounds.recovered_slack_p10_seconds:
        raise ValueError(
            f"reject_slack_p10_seconds is {bounds.reject_slack_p10_seconds:g}, not at least 0 and under "
            f"recovered_slack_p10_seconds, {bounds.recovered_slack_p10_seconds:g}"
        )


def _is_name(text: str) -> bool:
    return re.fullmatch(NAME, text) is not None
