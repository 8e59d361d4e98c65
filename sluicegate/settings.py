"""One settings file for everything: YAML first, then the environment (contract §10).

Durations carry their unit in the name (`_s`, `_ms`, `_seconds`), so a profile can make every one of them faster.
The contract (limits, classes, thresholds, timings) takes effect only through `queue init|apply`, which store it in
Redis.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from sluicegate.contract import ClassSettings, Contract, CostClassSettings, Dispatch
from sluicegate.errors import SettingsError
from sluicegate.redis_settings import RedisSettings
from sluicegate.section import NAME, Section
from sluicegate.service_settings import (
    ApiSettings,
    AutomationSettings,
    ExporterSettings,
    FixSettings,
    ListenSettings,
    MonitoringSettings,
    ReconcileSettings,
    WorkerSettings,
)
from sluicegate.timings import Timings
from sluicegate.yaml_text import parsed

# What makes up the settings is imported from here.
__all__ = [
    "DRILL_CLASSES",
    "ENVIRONMENT",
    "SECRETS",
    "ApiSettings",
    "AutomationSettings",
    "ClassSettings",
    "Contract",
    "CostClassSettings",
    "Dispatch",
    "ExporterSettings",
    "FixSettings",
    "ListenSettings",
    "MonitoringSettings",
    "ReconcileSettings",
    "RedisSettings",
    "Settings",
    "Timings",
    "WorkerSettings",
    "default_settings",
    "faster",
    "load",
    "parse",
]

# What a faster profile leaves alone: pacing and floors that depend on the machine, not on the jobs.
_NOT_SCALED = frozenset({"tick_s", "canary_latency_floor_s", "sweep_ms"})
# Far more than the longest settings; a file that stands for more is a mistake.
_MOST_VALUES = 100_000
# What no error and no listing repeats; of an address a listing shows what may be shown.
SECRETS = frozenset({"token", "redis_url"})


def _may_hold_secret(place: tuple[str, ...]) -> bool:
    return any(part in SECRETS or part.endswith(("url", "urls")) for part in place)


class Settings(Section):
    """Say which queue, on which server, and whom its workers call; a section for each further thing."""

    queue: str = Field(default="default", pattern=NAME, description="The queue; several share one Redis by name.")
    redis_url: str = Field(default="redis://127.0.0.1:6379/0", description="Address of its Redis or Valkey.")
    redis_password_file: Path | None = Field(
        default=None, description="File with the password there; read anew for every connection."
    )
    provider_url: str = Field(default="http://127.0.0.1:8080", description="Address of the provider that workers call.")
    contract: Contract
    redis: RedisSettings = RedisSettings()
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


DRILL_CLASSES: dict[str, dict[str, Any]] = {
    "lint-fix": {"deadline_s": 60, "canary": {"prompt": "canary: lint an empty file"}},
    "test-patch": {"deadline_s": 180, "canary": {"prompt": "canary: patch nothing"}},
    "refactor-plan": {"deadline_s": 900, "canary": {"prompt": "canary: plan nothing"}},
}

# Names of the environment, and the settings that they beat.
ENVIRONMENT: dict[tuple[str, ...], str] = {
    ("redis_url",): "REDIS_URL",
    ("redis_password_file",): "REDIS_PASSWORD_FILE",
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


# What a reader needs to write a first file.
_LEAST = (
    "The least it holds is `contract: {classes: {NAME: {deadline_s: 60}}}`; "
    "docs/guides/your-queue.md shows a whole one, `sluicegate queue settings` every setting."
)


_SAID = {"extra_forbidden": "there is no setting of this name here", "missing": "it must be given"}


def default_settings() -> Settings:
    """Give the drill's settings: the three classes of contract §3 and every default."""
    return Settings.model_validate({"contract": {"classes": DRILL_CLASSES}})


def load(path: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the YAML file (the drill's settings without one), then the environment over it.

    Raises SettingsError naming the field and the bound.
    """
    body = _read(Path(path)) if path is not None else {"contract": {"classes": DRILL_CLASSES}}
    values = os.environ if environment is None else environment
    given = {where: name for where, name in ENVIRONMENT.items() if values.get(name)}
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
        showable = isinstance(first["input"], str | int | float) and not _may_hold_secret(place)
        value = f"{first['input']!r} is" if showable else "is"
        raise SettingsError(
            f"{(variables or {}).get(place, source)}: {'.'.join(place) or 'settings'} {value} not valid: "
            f"{_SAID.get(first['type'], first['msg'].removeprefix('Value error, '))}.",
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
        body = parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.", _LEAST) from error
    except RecursionError as error:
        raise SettingsError(f"The settings file {path} is nested too deeply to be settings.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SettingsError(f"The settings file {path} is not valid YAML.", str(error)) from error
    if body is None:
        raise SettingsError(f"The settings file {path} is empty.", _LEAST)
    if not isinstance(body, dict):
        raise SettingsError(f"The settings file {path} must hold a mapping, not {type(body).__name__}.", _LEAST)
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
