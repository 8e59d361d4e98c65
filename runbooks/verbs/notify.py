"""notify: tell people something, through an outbox that no run waits for."""

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
    """Hold one line of text, and where it goes: `log`, or `webhook:NAME` with NAME among the settings' urls."""

    text: Text
    to: tuple[str, ...]
    verb: ClassVar[str] = VerbName.NOTIFY

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Notify:
        return cls(Text.read(fields["text"], where.at("text")), tuple(fields["to"]))

    def line(self, context: Context) -> str:
        return (
            f"tell {', '.join(self.to)}: {self.text.resolve(context)!r}, through {context.keys(names.OUTBOX)}; "
            "the run does not wait for it to be delivered"
        )
