"""fix: remove the fault, or point the workers at the known-good endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.quantity import in_words
from runbooks.values import Address, Duration
from runbooks.verbs.approve import approve_command
from runbooks.verbs.hook import Hook, http_url
from runbooks.verbs.step import Holder, OnUnknown, StepParams, VerbName
from runbooks.where import Where
from sluicegate.http_address import masked
from sluicegate.telemetry import Telemetry


class FixBy(StrEnum):
    """Name what ends the wait for the fix; a named person may always end it."""

    HOOK = "hook"  # the hook's 2xx; with a probe, the probe after it
    PROBE = "probe"  # the probe's 2xx
    PERSON = "person"  # a named person's approval


@dataclass(frozen=True, slots=True)
class Fix(StepParams):
    """Hold how the path is fixed; hook and probe count where the settings give them a URL."""

    hook: Hook | None
    probe: Address | None
    page_every: Duration
    verb: ClassVar[str] = VerbName.FIX
    holder: ClassVar[Holder] = Holder.RECOVERY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Fix:
        hook, probe = fields.get("hook"), fields.get("probe")
        return cls(
            hook=None if hook is None else Hook.read(hook, where.at("hook")),
            probe=None if probe is None else Address.read(probe["url"], where.at("probe").at("url")),
            page_every=Duration.read(fields["page_every"], where.at("page_every")),
        )

    def probe_url(self, context: Context) -> str | None:
        """Give the URL that answers 2xx once the path works, or None; raises SettingsError for another scheme."""
        return http_url(self.probe.resolve(context), "probe") if self.probe is not None else None

    def by(self, context: Context) -> FixBy:
        """Say what ends the wait under these settings."""
        if self.hook is not None and self.hook.target(context) is not None:
            return FixBy.HOOK
        return FixBy.PROBE if self.probe_url(context) is not None else FixBy.PERSON

    def on_unknown(self, context: Context) -> OnUnknown:
        """Say what follows a lost outcome of the hook: without a rule, or a probe to ask, a named person."""
        declared = self.hook.on_unknown if self.hook is not None else None
        if declared is None or (declared is OnUnknown.PROBE and self.probe_url(context) is None):
            return OnUnknown.HOLD
        return declared

    def line(self, context: Context) -> str:
        probe = self.probe_url(context)
        ask = f"wait until GET {masked(probe)} answers 2xx" if probe is not None else ""
        call = self.hook.line(context, self.on_unknown(context)) if self.hook is not None else None
        ways = [way for way in (call, ask) if way]
        person = approve_command(context, self.verb)
        ways.append(
            f"or a named person approves: {person}" if ways else f"wait until a named person approves: {person}"
        )
        return f"{'; '.join(ways)}; page every {in_words(self.page_every.resolve(context))} until then"

    def figures(self, context: Context, telemetry: Telemetry) -> tuple[tuple[str, float | None], ...]:
        return (
            ("provider_window_calls", telemetry.provider.calls),
            ("provider_window_failed_calls", telemetry.provider.failed),
        )
