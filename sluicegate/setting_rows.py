"""List every setting with its default, its bound, its value here and the one in force. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sluicegate.http_address import masked
from sluicegate.redis_address import shown as server_shown
from sluicegate.settings import SECRETS, Settings

# An address, wherever it stands in a value.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"]+")
_SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """Hold one setting as text: `here` is the file's and the environment's, `in_force` what the queue obeys.

    What belongs to the contract is in force as stored in Redis (`—` where nothing is stored), the rest as it is here.
    """

    name: str
    default: str
    bound: str
    here: str
    in_force: str


def setting_rows(settings: Settings, stored: str | None) -> tuple[SettingRow, ...]:
    """Give all settings in their order; `stored` is the contract in Redis, None without one."""
    in_force = dict(_stored_values(json.loads(stored))) if stored is not None else None
    return tuple(_with_force(row, in_force) for row in _rows(settings, ""))


def _with_force(row: SettingRow, in_force: Mapping[str, Any] | None) -> SettingRow:
    if not row.name.startswith("contract."):
        return row
    if in_force is None:
        return dataclasses.replace(row, in_force="—")
    if row.name in in_force:
        return dataclasses.replace(row, in_force=text(in_force[row.name]))
    return row


def _rows(model: BaseModel, prefix: str) -> Iterator[SettingRow]:
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        path = prefix + name
        if isinstance(value, BaseModel):
            yield from _rows(value, f"{path}.")
        elif isinstance(value, dict) and value and all(isinstance(inner, BaseModel) for inner in value.values()):
            for key, inner in value.items():
                yield from _rows(inner, f"{path}.{key}.")
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                here = text(getattr(value, field.name))
                yield SettingRow(f"{path}.{field.name}", text(field.default), field.metadata["bound"], here, here)
        else:
            here = _without_secrets(name, value)
            yield SettingRow(path, default(info), bound(info), here, here)


def _without_secrets(name: str, value: object) -> str:
    """Give a value as it is listed: of an address what may be shown, of a secret nothing."""
    shown = text(value)
    if name == "redis_url":
        return server_shown(shown)
    whole = _ADDRESS.fullmatch(shown) is not None
    if value is not None and (name in SECRETS or (name.endswith("url") and not whole)):
        return "***"
    return _ADDRESS.sub(lambda found: masked(found[0]), shown)


def default(info: FieldInfo) -> str:
    """Give a setting's default as text, `required` where it has none."""
    return "required" if info.is_required() else text(info.get_default(call_default_factory=True))


def bound(info: FieldInfo) -> str:
    """Give a setting's bounds as text, empty where it has none."""
    parts = []
    for rule in info.metadata:
        for name, sign in _SIGNS.items():
            if (value := getattr(rule, name, None)) is not None:
                parts.append(f"{sign} {text(value)}")
        if (pattern := getattr(rule, "pattern", None)) is not None:
            parts.append(pattern)
        if (length := getattr(rule, "min_length", None)) is not None:
            parts.append(f"at least {length}")
    return " and ".join(parts)


def text(value: object) -> str:
    """Give a value as it is listed; `—` is none."""
    if value is None:
        return "—"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | tuple):
        return json.dumps(value)
    return str(value)


def _stored_values(contract: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give the stored contract under the names of the settings: whole ms become seconds, 0 and `-` none."""
    for name, value in contract.items():
        if not isinstance(value, dict):
            yield f"contract.{'canary_required_ok' if name == 'canaries_required' else name}", value
    for name, value in contract["thresholds"].items():
        yield f"contract.thresholds.{name}", float(value)
    for name, value in contract["timings"].items():
        yield f"contract.timings.{name.removesuffix('_ms')}_s", value / 1000
    for kind in ("classes", "cost_classes"):
        for key, declared in (contract[kind] or {}).items():
            path = f"contract.{kind}.{key}"
            for name in ("max_pending", "max_running"):
                yield f"{path}.{name}", declared[name] or None
            if kind == "classes":
                yield f"{path}.deadline_s", declared["deadline_ms"] / 1000
                yield f"{path}.effects", declared["effects"]
                yield f"{path}.cost_class", None if declared["cost_class"] == "-" else declared["cost_class"]
