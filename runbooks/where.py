"""Say where in a runbook file something stands, so that every refusal names file, field, value and bound."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.errors import SettingsError

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Where:
    """Name a field of a runbook file, such as `steps[3].drain.keep_slack`."""

    file: str
    field: str = ""

    def at(self, part: str | int) -> Where:
        """Go one level down: a key, or the index of a list."""
        if isinstance(part, int):
            return Where(self.file, f"{self.field}[{part}]")
        return Where(self.file, f"{self.field}.{part}" if self.field else part)

    def refuse(self, value: object, bound: str, hint: str = "") -> SettingsError:
        """Build the error for a value that breaks its bound; the caller raises it."""
        field = self.field or "the file"
        return SettingsError(f"{self.file}: {field} is {shown(value)}, {bound}.", hint)

    def missing(self) -> SettingsError:
        """Build the error for a field that is required and absent; the caller raises it."""
        return SettingsError(f"{self.file}: {self.field} is missing, and it is required.")


def shown(value: object) -> str:
    """Show a value on one line and cut it, so that a message stays a sentence."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
