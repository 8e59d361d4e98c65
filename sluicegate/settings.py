"""One settings file for everything: YAML first, then the environment names kept from the source (SPEC §10).

Durations carry their unit in the name (`_s`, `_ms`, `_seconds`), so a profile can make every one of them faster.
The contract (limits, classes, thresholds, timings) takes effect only through `queue init|apply`, which store it in
Redis.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sluicegate.errors import SettingsError
from sluicegate.job import Effects
from sluicegate.policy import Thresholds

_NAME = r"^[a-z][a-z0-9]*([-_][a-z0-9]+)*$"
# What a faster profile leaves alone: pacing and floors that depend on the machine, not on the jobs.
_NOT_SCALED = frozenset({"tick_s", "canary_latency_floor_s", "sweep_ms"})
# Far more than the longest settings; a file that stands for more is a mistake.
_MOST_VALUES = 100_000
# The functions count in whole ms, and Redis takes no expiry of 0; far ahead, their instants are no exact numbers.
_SHORTEST_S = 0.001
_LONGEST_S = 10 * 365 * 86_400
# What no error and no listing repeats.
SECRETS = frozenset({"token", "redis_url"})


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Dispatch(StrEnum):
    """Name which job is claimed next; a setting of the contract."""

    FIFO = "fifo"  # the one that has been eligible for longest
    EDF = "edf"  # the one whose deadline comes first


class ClassSettings(_Model):
    """Declare one class of jobs: its deadline in seconds, what a repeated call does, and its canary."""

    deadline_s: float = Field(gt=0)
    effects: Effects = Effects.KEYED
    cost_class: str | None = Field(default=None, pattern=_NAME)
    max_pending: int | None = Field(default=None, ge=1)
    max_running: int | None = Field(default=None, ge=1)
    canary: dict[str, Any] | None = None


class CostClassSettings(_Model):
    """Limit what shares one costly resource, such as a browser."""

    max_pending: int | None = Field(default=None, ge=1)
    max_running: int | None = Field(default=None, ge=1)


class Timings(_Model):
    """Hold every duration of the contract, in the unit of its name (SPEC §3 to §7)."""

    tick_s: float = Field(default=0.5, gt=0)
    provider_window_s: float = Field(default=30, gt=0)
    controller_silent_s: float = Field(default=15, gt=0)
    controller_lease_s: float = Field(default=5, gt=0)
    reject_dwell_s: float = Field(default=10, gt=0)
    reject_dwell_max_s: float = Field(default=160, gt=0)
    reject_return_s: float = Field(default=60, gt=0)
    second_drain_s: float = Field(default=3600, gt=0)
    run_open_after_s: float = Field(default=30, gt=0)
    limit_grace_s: float = Field(default=10, gt=0)
    margin_s: float = Field(default=2, gt=0)
    call_timeout_max_s: float = Field(default=10, gt=0)
    call_timeout_min_s: float = Field(default=1, gt=0)
    call_reserve_s: float = Field(default=1, gt=0)
    backoff_first_s: float = Field(default=2, gt=0)
    backoff_max_s: float = Field(default=30, gt=0)
    overloaded_retry_s: float = Field(default=30, gt=0)
    class_limit_retry_s: float = Field(default=15, gt=0)
    closed_retry_s: float = Field(default=30, gt=0)
    worker_seen_s: float = Field(default=10, gt=0)
    freeze_timeout_s: float = Field(default=60, gt=0)
    drain_timeout_s: float = Field(default=60, gt=0)
    drain_keep_slack_s: float = Field(default=15, gt=0)
    fix_timeout_s: float = Field(default=3600, gt=0)
    fix_page_s: float = Field(default=300, gt=0)
    canary_timeout_s: float = Field(default=120, gt=0)
    canary_latency_floor_s: float = Field(default=1, gt=0)
    burn_down_max_s: float = Field(default=120, gt=0)
    burn_down_window_s: float = Field(default=30, gt=0)
    gate_timeout_s: float = Field(default=30, gt=0)
    ramp_step_s: float = Field(default=20, gt=0)
    run_lease_s: float = Field(default=10, gt=0)
    run_cooldown_s: float = Field(default=900, gt=0)
    episode_look_s: float = Field(default=5, gt=0)
    page_repeat_s: float = Field(default=300, gt=0)
    final_retention_s: float = Field(default=86_400, gt=0)
    refusal_retention_s: float = Field(default=3600, gt=0)
    failed_retention_s: float = Field(default=30 * 86_400, gt=0)


class Contract(_Model):
    """Hold what two clients must agree on; stored in Redis with a digest, read there by the functions."""

    max_pending: int | None = Field(default=None, ge=1)
    max_running: int = Field(default=6, ge=1)
    lease_ms: int = Field(default=30_000, ge=100)
    retry_budget: int = Field(default=5, ge=1)
    loss_budget: int = Field(default=2, ge=1)
    expected_service_s: float = Field(default=1.0, gt=0)
    strict_classes: bool = True
    dispatch: Dispatch = Dispatch.FIFO
    classes: dict[str, ClassSettings] = Field(min_length=1)
    cost_classes: dict[str, CostClassSettings] = {}
    thresholds: Thresholds = Thresholds()
    timings: Timings = Timings()
    canary_required_ok: int = Field(default=3, ge=1)
    canary_failures_max: int = Field(default=3, ge=1)
    burn_down_min_age_fall_s: float = Field(default=1, gt=0)
    burn_down_min_backlog_fall: float = Field(default=0.10, gt=0, lt=1)
    ramp_percents: tuple[int, ...] = (10, 50, 100)
    prediction_min_completions: int = Field(default=20, ge=1)
    runs_per_hour: int = Field(default=3, ge=1)
    runs_at_once: int = Field(default=2, ge=1)

    @model_validator(mode="after")
    def _check_across_fields(self) -> Self:
        names = list(self.classes) + list(self.cost_classes)
        for name in names:
            if not _is_name(name):
                raise ValueError(f"class {name!r} must match {_NAME}")
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
        _check_pairs(self.timings)
        if list(self.ramp_percents) != sorted(set(self.ramp_percents)) or self.ramp_percents[-1:] != (100,):
            raise ValueError("ramp_percents must grow and end at 100")
        if self.ramp_percents[0] < 1:
            raise ValueError("ramp_percents must start at 1 or more")
        return self

    @property
    def shortest_deadline_s(self) -> float:
        return min(declared.deadline_s for declared in self.classes.values())

    @property
    def capacity_per_s(self) -> float:
        """Give gross capacity in jobs/s: max_running ÷ mean service seconds (SPEC §5)."""
        return self.max_running / self.expected_service_s

    @property
    def effective_max_pending(self) -> int:
        """Give max_pending, by default min(10,000, capacity × half the shortest deadline) (SPEC §5)."""
        if self.max_pending is not None:
            return self.max_pending
        return max(1, min(10_000, math.floor(self.capacity_per_s * self.shortest_deadline_s / 2)))

    @property
    def canary_classes(self) -> tuple[str, ...]:
        return tuple(name for name, declared in self.classes.items() if declared.canary is not None)

    @property
    def canaries_required(self) -> int:
        """Give how many canary successes in a row make green (SPEC §7.5)."""
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
        classes = {
            name: {
                "deadline_ms": round(declared.deadline_s * 1000),
                "effects": declared.effects.value,
                "cost_class": declared.cost_class or "-",
                "max_pending": declared.max_pending or 0,
                "max_running": declared.max_running or 0,
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
            "runs_at_once": self.runs_at_once,
        }
        return json.dumps(body, sort_keys=True, separators=(",", ":"))

    def digest(self) -> str:
        """Give the contract's fingerprint: 16 hex digits of the SHA-256 of its rendered form."""
        return hashlib.sha256(self.for_redis().encode()).hexdigest()[:16]


def _fingerprint(payload: dict[str, Any] | None) -> str:
    """Stand for a canary's payload, so that the digest covers it and no function has to read it; empty for none."""
    if payload is None:
        return ""
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()[:16]


class WorkerSettings(_Model):
    """Set how one worker process pulls."""

    max_inflight: int = Field(default=2, ge=1)
    sweep_ms: int = Field(default=250, ge=10)
    idle_wait_s: float = Field(default=0.2, gt=0)


class ListenSettings(_Model):
    """Say where a service listens; port 0 takes a free one."""

    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65_535)


class ExporterSettings(ListenSettings):
    """Set the exporter: where it listens and how long one scrape may take."""

    port: int = Field(default=9108, ge=0, le=65_535)
    scrape_budget_s: float = Field(default=2.0, gt=0)


class ApiSettings(ListenSettings):
    """Set `queue serve`: where it listens, the file with its bearer token, and how it shares calls and bounds waits."""

    port: int = Field(default=9110, ge=0, le=65_535)
    token_file: Path | None = None
    max_batch: int = Field(default=25, ge=1, le=100)
    in_flight: int = Field(default=2, ge=1, le=64)
    max_waiting: int = Field(default=1000, ge=1, le=1_000_000)
    body_within_s: float = Field(default=10, gt=0)
    answer_within_s: float = Field(default=5, gt=0)


class ReconcileSettings(_Model):
    """Set how unknown jobs are settled without a person: by the ledger, and by asking a URL about the key.

    `http_url` names the key as {key}. Only jobs unknown for `after_s` are asked about: until then their worker may
    still report, and a call that is under way may still do what it was made for.
    """

    automatic: bool = True
    every_s: float = Field(default=5, gt=0)
    after_s: float = Field(default=30, gt=0)
    http_url: str | None = Field(default=None, pattern=r"^https?://[^{}]*\{key\}[^{}]*$")
    http_timeout_s: float = Field(default=2, gt=0, le=60)
    ask_again_s: float = Field(default=30, gt=0)
    ask_again_max_s: float = Field(default=600, gt=0)
    asks_a_turn: int = Field(default=10, ge=1, le=100)


class FixSettings(_Model):
    """Say how a run's `fix` step is done: a hook to call, else a person approves."""

    hook_url: str | None = None
    hook_method: str = "POST"
    probe_url: str | None = None


class AutomationSettings(ListenSettings):
    """Set the automation service: where it listens, who may call it, and how the path is fixed."""

    port: int = Field(default=9109, ge=0, le=65_535)
    token: str | None = None
    fix: FixSettings = FixSettings()
    snapshot_dir: Path = Path("snapshots")
    prometheus_url: str | None = None
    alertmanager_url: str | None = None


class MonitoringSettings(_Model):
    """Hold the timings of Prometheus and Alertmanager that the generated files assume."""

    scrape_interval_s: float = Field(default=2, gt=0)
    evaluation_interval_s: float = Field(default=2, gt=0)
    alert_for_s: float = Field(default=4, ge=0)
    keep_firing_for_s: float = Field(default=30, ge=0)
    group_wait_s: float = Field(default=0, ge=0)
    group_interval_s: float = Field(default=10, gt=0)
    repeat_interval_s: float = Field(default=300, gt=0)
    webhook_url: str = "http://127.0.0.1:9109/webhooks/alertmanager"
    runbook_base_url: str = "https://runbooks.example/sluicegate"
    exporter_job: str = "sluicegate"


class Settings(_Model):
    """Hold everything one process needs; build it with `load()`."""

    queue: str = Field(default="default", pattern=_NAME)
    redis_url: str = "redis://127.0.0.1:6379/0"
    provider_url: str = "http://127.0.0.1:8080"
    contract: Contract
    worker: WorkerSettings = WorkerSettings()
    exporter: ExporterSettings = ExporterSettings()
    api: ApiSettings = ApiSettings()
    automation: AutomationSettings = AutomationSettings()
    reconcile: ReconcileSettings = ReconcileSettings()
    monitoring: MonitoringSettings = MonitoringSettings()

    @model_validator(mode="after")
    def _check_across_parts(self) -> Self:
        longest_s = self.contract.timings.call_timeout_max_s
        if self.reconcile.after_s < longest_s:
            raise ValueError(
                f"reconcile.after_s is {self.reconcile.after_s:g}, below call_timeout_max_s of {longest_s:g}: a call "
                "that is under way may still do what it was made for"
            )
        if self.reconcile.ask_again_s > self.reconcile.ask_again_max_s:
            raise ValueError(
                f"reconcile.ask_again_s is {self.reconcile.ask_again_s:g}, above ask_again_max_s of "
                f"{self.reconcile.ask_again_max_s:g}"
            )
        return self


def _check_durations(contract: Contract) -> None:
    durations = {
        "lease_ms": contract.lease_ms / 1000,
        "expected_service_s": contract.expected_service_s,
        "burn_down_min_age_fall_s": contract.burn_down_min_age_fall_s,
        **{f"deadline_s of class {name!r}": declared.deadline_s for name, declared in contract.classes.items()},
        **dict(contract.timings),
    }
    for name, seconds in durations.items():
        if not _SHORTEST_S <= seconds <= _LONGEST_S:
            raise ValueError(f"{name} is {seconds:g} s, not from 1 ms to 10 years")


def _check_pairs(timings: Timings) -> None:
    for least, most in (
        ("call_timeout_min_s", "call_timeout_max_s"),
        ("backoff_first_s", "backoff_max_s"),
        ("reject_dwell_s", "reject_dwell_max_s"),
    ):
        if getattr(timings, least) > getattr(timings, most):
            raise ValueError(f"{least} is {getattr(timings, least):g}, above {most} of {getattr(timings, most):g}")


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
    return re.fullmatch(_NAME, text) is not None


DRILL_CLASSES: dict[str, dict[str, Any]] = {
    "lint-fix": {"deadline_s": 60, "canary": {"prompt": "canary: lint an empty file"}},
    "test-patch": {"deadline_s": 180, "canary": {"prompt": "canary: patch nothing"}},
    "refactor-plan": {"deadline_s": 900, "canary": {"prompt": "canary: plan nothing"}},
}

# Environment names kept from the source, and where they land.
_ENVIRONMENT: dict[tuple[str, ...], str] = {
    ("redis_url",): "REDIS_URL",
    ("provider_url",): "PROVIDER_URL",
    ("queue",): "SLUICEGATE_QUEUE",
    # The port of whichever service a process is.
    ("exporter", "port"): "PORT",
    ("automation", "port"): "PORT",
    ("api", "port"): "PORT",
    ("worker", "max_inflight"): "WORKER_MAX_INFLIGHT",
    ("worker", "sweep_ms"): "DEADLINE_SWEEP_MS",
    ("contract", "thresholds", "reject_age_p95_seconds"): "ADMIT_QUEUE_AGE_P95_MAX_S",
    ("contract", "thresholds", "drain_provider_5xx_rate"): "DRAIN_PROVIDER_5XX_RATE",
    ("contract", "thresholds", "drain_age_p95_seconds"): "DRAIN_QUEUE_AGE_P95_S",
    ("contract", "canary_required_ok"): "CANARY_REQUIRED_OK",
}


def default_settings() -> Settings:
    """Give the drill's settings: the three classes of SPEC §3 and every default."""
    return Settings.model_validate({"contract": {"classes": DRILL_CLASSES}})


def load(path: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the YAML file (the drill's settings without one), then the environment over it.

    Raises SettingsError naming the field and the bound.
    """
    body = _read(path) if path is not None else {"contract": {"classes": DRILL_CLASSES}}
    values = os.environ if environment is None else environment
    given = {where: name for where, name in _ENVIRONMENT.items() if values.get(name)}
    for where, name in given.items():
        _put(body, where, values[name])
    sources = [str(path)] if path is not None else []
    return parse(body, " and ".join([*sources, *dict.fromkeys(given.values())]) or "the defaults", given)


def parse(body: Mapping[str, Any], source: str, variables: Mapping[tuple[str, ...], str] | None = None) -> Settings:
    """Check a settings mapping as a whole; errors name `source`, or the environment variable that set the place."""
    try:
        return Settings.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = tuple(str(part) for part in first["loc"])
        showable = isinstance(first["input"], str | int | float) and not SECRETS.intersection(place)
        value = f"{first['input']!r} is" if showable else "is"
        raise SettingsError(
            f"{(variables or {}).get(place, source)}: {'.'.join(place) or 'settings'} {value} not valid: "
            f"{first['msg'].removeprefix('Value error, ')}.",
            "Run `sluicegate queue settings` to see every setting with its default and bound.",
        ) from error


def faster(settings: Settings, factor: float) -> Settings:
    """Divide every duration of the contract by `factor`; counts, the tick and the machine's floors stay."""
    body = settings.model_dump(mode="json")
    body["contract"] = _divide(body["contract"], factor)
    return Settings.model_validate(body)


def _divide(body: dict[str, Any], factor: float) -> dict[str, Any]:
    divided: dict[str, Any] = {}
    for key, inner in body.items():
        is_duration = key.endswith(("_s", "_ms", "_seconds")) and key not in _NOT_SCALED
        if is_duration and isinstance(inner, int | float):
            quotient = inner / factor
            divided[key] = round(quotient) if key.endswith("_ms") else quotient
        elif isinstance(inner, dict) and key != "canary":
            divided[key] = _divide(inner, factor)
        else:
            divided[key] = inner
    return divided


def _read(path: Path) -> dict[str, Any]:
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except RecursionError as error:
        raise SettingsError(f"The settings file {path} is nested too deeply to be settings.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SettingsError(f"The settings file {path} is not valid YAML.", str(error)) from error
    if not isinstance(body, dict):
        raise SettingsError(f"The settings file {path} must hold a mapping, not {type(body).__name__}.")
    if _holds_more_than(_MOST_VALUES, body):
        raise SettingsError(
            f"The settings file {path} holds more than {_MOST_VALUES} values.",
            "An alias (*name) stands for everything that its anchor holds.",
        )
    return body


def _holds_more_than(most: int, body: object) -> bool:
    """Count values, an alias as all it stands for: a few lines of YAML can stand for more than a memory holds."""
    count, left = 0, [body]
    while left and count <= most:
        value = left.pop()
        count += 1
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        # No more of a long list than can matter.
        left.extend(islice(inner, most + 1))
    return count > most


def _put(body: dict[str, Any], where: tuple[str, ...], value: str) -> None:
    for part in where[:-1]:
        inner = body.get(part)
        # An empty section is no section; one that is no mapping stays, for parse() to name it.
        body[part] = {} if inner is None else inner
        if not isinstance(body[part], dict):
            return
        body = body[part]
    body[where[-1]] = value
