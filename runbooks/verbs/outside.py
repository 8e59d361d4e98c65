"""A verb of somebody else's: found through its entry point, called once, under a rule for a lost outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.values import Address
from runbooks.verbs.approve import approve_command
from runbooks.verbs.step import OnUnknown, StepParams, VerbName
from runbooks.where import Where
from sluicegate.errors import SettingsError
from sluicegate.run_steps import ROLLBACK_VERB, OutsideCall, OutsideStep

ENTRY_POINTS = "sluicegate.steps"
# What every step has beside its own parameters.
COMMON = ("timeout", "on_timeout", "on_unknown")
_NAME = re.compile(r"[a-z][a-z_]{1,39}")


@dataclass(frozen=True, slots=True)
class Outside(StepParams):
    """Hold the verb's name, who carries it out, and its parameters; texts among them are templates."""

    called: str
    by: OutsideStep
    parameters: Mapping[str, Any]
    on_unknown: OnUnknown | None
    verb: ClassVar[str] = ""

    @property
    def word(self) -> str:
        return self.called

    def call(self, context: Context) -> OutsideCall:
        """Give what it is called with; its key is the run's id and the verb."""
        return OutsideCall(
            run_id=context.run_id,
            queue=context.settings.queue,
            idempotency_key=f"{context.run_id}/{self.called}",
            parameters={
                name: value.resolve(context) if isinstance(value, Address) else value
                for name, value in self.parameters.items()
            },
        )

    def line(self, context: Context) -> str:
        lost = {
            OnUnknown.PROBE: "a lost outcome is probed",
            OnUnknown.RETRY: "after a lost outcome it is called again under the same key",
            OnUnknown.HOLD: "a lost outcome waits for a named person",
        }[self.on_unknown or OnUnknown.HOLD]
        person = approve_command(context, self.called)
        return f"{self.by.line(self.call(context))}; {lost}; if it fails, a named person passes the step: {person}"


def reader(name: str, by: OutsideStep) -> Callable[[Mapping[str, Any], Where], Outside]:
    """Give what reads a step of this verb from a file."""

    def read(fields: Mapping[str, Any], where: Where) -> Outside:
        own = {key: value for key, value in fields.items() if key not in COMMON}
        unknown = fields.get("on_unknown")
        return Outside(
            called=name,
            by=by,
            parameters={
                key: Address.read(value, where.at(key)) if isinstance(value, str) else value
                for key, value in own.items()
            },
            on_unknown=None if unknown is None else OnUnknown(unknown),
        )

    return read


@lru_cache(maxsize=1)
def found() -> Mapping[str, OutsideStep]:
    """Give the installed verbs by name; raises SettingsError naming the entry point that cannot be one."""
    return {point.name: _loaded(point) for point in entry_points(group=ENTRY_POINTS)}


def _loaded(point: EntryPoint) -> OutsideStep:
    where = f"The entry point {point.name!r} of {ENTRY_POINTS} ({point.value})"
    if _NAME.fullmatch(point.name) is None or point.name == ROLLBACK_VERB:
        raise SettingsError(f"{where} has a name that no verb can have.", "Use small letters and underscores.")
    if point.name in set(VerbName):
        raise SettingsError(f"{where} has the name of a built-in verb.", "Give it another name.")
    try:
        step = point.load()
    except Exception as error:  # whatever a stranger's module raises as it is loaded
        raise SettingsError(f"{where} cannot be loaded: {error!r}.") from error
    schema = getattr(step, "schema", None)
    complete = all(callable(getattr(step, name, None)) for name in ("line", "act", "probe"))
    if not complete or not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        raise SettingsError(f"{where} is no OutsideStep.", "It has `schema`, `line`, `act` and `probe`.")
    if taken := sorted(set(COMMON) & set(schema["properties"])):
        raise SettingsError(f"{where} has a parameter `{taken[0]}`, which every step has.", "Give it another name.")
    return step  # type: ignore[no-any-return]  # what an OutsideStep has was just looked for
