"""notify: tell people something, in the runbook's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runbooks.context import Context
from runbooks.values import Text
from runbooks.verbs.step import StepParams, VerbName
from runbooks.where import Where
from sluicegate import keys as names


@dataclass(frozen=True, slots=True)
class Notify(StepParams):
    """Hold one line of text; who hears it is in the settings (`automation.receivers`)."""

    text: Text
    verb: ClassVar[str] = VerbName.NOTIFY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Notify:
        return cls(Text.read(fields["text"], where.at("text")))

    def line(self, context: Context) -> str:
        notices = context.keys(names.NOTICES)
        return f"tell the log and every receiver that hears `said`: {self.text.resolve(context)!r} ({notices})"
