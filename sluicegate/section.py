"""Be the base of every section of the settings: what all of them refuse, and how one setting is declared."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

NAME = r"^[a-z][a-z0-9]*([-_][a-z0-9]+)*$"


class Section(BaseModel):
    """Hold settings that belong together: frozen, and none that is not declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def seconds(default: float, says: str) -> float:
    """Declare a duration above 0; `says` is its line in the reference."""
    return Field(default=default, gt=0, description=says)
