"""Be the base of every section of the settings: what all of them refuse, and how one setting is declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

_NUMBERS: tuple[Any, ...] = (int, float, int | None, float | None)
NAME = r"^[a-z][a-z0-9]*([-_][a-z0-9]+)*$"


class Section(BaseModel):
    """Hold settings that belong together: frozen, and none that is not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_switches(cls, body: object) -> object:
        if isinstance(body, Mapping):
            refuse_switches({name: info.annotation for name, info in cls.model_fields.items()}, body)
        return body


def refuse_switches(annotations: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """Raise ValueError where a number is asked for and yes or no was written: Python takes True for 1."""
    for name, value in body.items():
        if isinstance(value, bool) and annotations.get(name) in _NUMBERS:
            raise ValueError(f"{name} is {str(value).lower()}, no number")


def seconds(default: float, says: str) -> float:
    """Declare a duration above 0; `says` is its line in the reference."""
    return Field(default=default, gt=0, description=says)
