"""http: call a system outside, once: under an idempotency key, with a rule for a lost outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.values import Address
from runbooks.verbs.approve import approve_command
from runbooks.verbs.hook import Hook, http_url
from runbooks.verbs.step import OnUnknown, StepParams, VerbName
from runbooks.where import Where
from sluicegate.http_address import masked


@dataclass(frozen=True, slots=True)
class Http(StepParams):
    """Hold the call, and the address that answers 2xx once it has been carried out."""

    hook: Hook
    probe: Address | None
    verb: ClassVar[str] = VerbName.HTTP

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Http:
        probe = fields.get("probe")
        return cls(
            hook=Hook.read(fields, where),
            probe=None if probe is None else Address.read(probe["url"], where.at("probe").at("url")),
        )

    def probe_url(self, context: Context) -> str | None:
        """Give the address to ask, or None."""
        return http_url(self.probe.resolve(context), "probe") if self.probe is not None else None

    def on_unknown(self, context: Context) -> OnUnknown:
        """Say what follows a lost outcome: without a probe to ask, a named person."""
        declared = self.hook.on_unknown or OnUnknown.HOLD
        return OnUnknown.HOLD if declared is OnUnknown.PROBE and self.probe_url(context) is None else declared

    def call_line(self, context: Context) -> str | None:
        """Say what is sent, or None where the settings name no address."""
        call, probe = self.hook.line(context, self.on_unknown(context)), self.probe_url(context)
        ask = f" by GET {masked(probe)}" if probe is not None else ""
        return None if call is None else f"{call}{ask}"

    def line(self, context: Context) -> str:
        person = f"a named person passes the step: {approve_command(context, self.verb)}"
        call = self.call_line(context)
        if call is None:
            return f"the settings name no address: {person}"
        return f"{call}; what was certainly not carried out is called again, three calls in all; then {person}"
