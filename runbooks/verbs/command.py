"""command: start a program that the settings allow, without a shell, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.quantity import in_words
from runbooks.verbs.approve import approve_command
from runbooks.verbs.step import OnUnknown, StepParams, VerbName
from runbooks.where import Where
from sluicegate.errors import SettingsError
from sluicegate.service_settings import CommandSettings


@dataclass(frozen=True, slots=True)
class Command(StepParams):
    """Hold the program's name among `automation.commands`, and the one that tells whether it has been done."""

    name: str
    on_unknown: OnUnknown | None
    probe: str | None
    verb: ClassVar[str] = VerbName.COMMAND

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Command:
        unknown, probe = fields.get("on_unknown"), fields.get("probe")
        return cls(
            name=fields["name"],
            on_unknown=None if unknown is None else OnUnknown(unknown),
            probe=None if probe is None else probe["name"],
        )

    def call_line(self, context: Context) -> str:
        """Say what is started, and what follows where its outcome is lost."""
        program = allowed(self.name, context)
        probe = f" by {' '.join(allowed(self.probe, context).argv)}" if self.probe is not None else ""
        lost = {
            OnUnknown.PROBE: f"a lost outcome is probed{probe}",
            OnUnknown.RETRY: "after a lost outcome it is started again",
            OnUnknown.HOLD: "a lost outcome waits for a named person",
        }[self.on_unknown or OnUnknown.HOLD]
        return (
            f"start {' '.join(program.argv)} ({self.name}) without a shell and with {_variables(program)}, for at most "
            f"{in_words(program.timeout_s)}; exit 0 is success; {lost}"
        )

    def line(self, context: Context) -> str:
        person = approve_command(context, self.verb)
        return f"{self.call_line(context)}; if it fails, a named person passes the step: {person}"


def allowed(name: str, context: Context) -> CommandSettings:
    """Give the program of this name; raises SettingsError where the settings allow none."""
    programs = context.settings.automation.commands
    if name not in programs:
        known = ", ".join(sorted(programs)) or "none"
        raise SettingsError(
            f"The runbook's command {name!r} is not among automation.commands.", f"Allowed are: {known}."
        )
    return programs[name]


def _variables(program: CommandSettings) -> str:
    return ", ".join(["PATH", "LANG", "SLUICEGATE_*", *program.environment]) + " alone of the environment"
