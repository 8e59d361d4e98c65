"""Hold what a runbook's lines may depend on, and the names its values may refer to."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from runbooks import quantity
from sluicegate.keys import Keys
from sluicegate.policy import Thresholds
from sluicegate.service_settings import URL_NAME
from sluicegate.settings import Contract, Settings, Timings

# What stands for the run's id while there is no run yet.
NO_RUN = "{run}"

# Addresses that the settings name; beside them each of `automation.urls`.
_ADDRESSES = frozenset({"automation.fix.hook_url", "automation.fix.probe_url", "automation.rollback_hook_url"})
# The declared list. Secrets (tokens, the queue's address) are not on it, and no data of an alert is.
NAMES: frozenset[str] = frozenset(
    [f"contract.timings.{name}" for name in Timings.model_fields]
    + [f"contract.thresholds.{field.name}" for field in fields(Thresholds)]
    + [
        "contract.burn_down_min_age_fall_s",
        "contract.burn_down_min_backlog_fall",
        "contract.canaries_required",
        "contract.canary_failures_max",
        "contract.proof_s",
        "contract.ramp_percents",
        *_ADDRESSES,
        "automation.fix.hook_method",
        "automation.snapshot_dir",
        "run.id",
        "queue",
    ]
)
# Beside them, each address that the settings name: `automation.urls.provider_switch`.
_URLS = "automation.urls."
_URL_NAME = re.compile(URL_NAME)


def is_declared(name: str) -> bool:
    """Say whether a value may refer to this name."""
    return name in NAMES or (name.startswith(_URLS) and _URL_NAME.fullmatch(name.removeprefix(_URLS)) is not None)


def is_address(name: str) -> bool:
    """Say whether a declared name stands for an address."""
    return name in _ADDRESSES or name.startswith(_URLS)


@dataclass(frozen=True, slots=True)
class Context:
    """Hold the settings and the run's id: what is the same when a run is planned and when it runs."""

    settings: Settings
    run_id: str = NO_RUN

    @property
    def contract(self) -> Contract:
        return self.settings.contract

    @property
    def keys(self) -> Keys:
        return Keys.for_queue(self.settings.queue)

    def named(self, name: str) -> str:
        """Give the text of a declared name; what is not set is empty."""
        if name == "run.id":
            return self.run_id
        if name.startswith(_URLS):
            return self.settings.automation.urls.get(name.removeprefix(_URLS), "")
        value: object = self.settings
        for part in name.split("."):
            value = getattr(value, part)
        return _text(value)


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case StrEnum():
            return value.value
        case str() | Path():
            return str(value)
        case tuple():
            return ", ".join(_text(part) for part in value)
        case int() | float():
            return quantity.plain(value)
        case _:
            raise TypeError(f"a setting of type {type(value).__name__} has no text")
