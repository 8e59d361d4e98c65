"""set_provider: point the workers at another endpoint of the provider; a rollback points them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.values import Address
from runbooks.verbs.hook import http_url
from runbooks.verbs.step import Holder, StepParams, VerbName
from runbooks.where import Where
from sluicegate import keys as names
from sluicegate.http_address import masked


@dataclass(frozen=True, slots=True)
class SetProvider(StepParams):
    """Hold the endpoint; where the settings name none, nothing is changed."""

    endpoint: Address
    verb: ClassVar[str] = VerbName.SET_PROVIDER
    holder: ClassVar[Holder] = Holder.RECOVERY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> SetProvider:
        return cls(Address.read(fields["endpoint"], where.at("endpoint")))

    def target(self, context: Context) -> str | None:
        """Give the endpoint, or None where the settings name none; raises SettingsError for another scheme."""
        return http_url(self.endpoint.resolve(context), "endpoint")

    def line(self, context: Context) -> str:
        url = self.target(context)
        if url is None:
            return "the settings name no endpoint: the workers are left where they are"
        return (
            f"point the workers at {masked(url)} ({context.keys(names.ENDPOINT)}), which they see with the next "
            "move of the gate; a rollback points them back"
        )
