"""Turn a checked document into a typed runbook; the schema has settled shapes, this settles values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runbooks.conditions import Condition
from runbooks.document import digest
from runbooks.model import (
    Confirm,
    Notify,
    NotifyWhen,
    OnTimeout,
    Runbook,
    Step,
    Trigger,
)
from runbooks.rehearsal_reading import read_test
from runbooks.values import Duration
from runbooks.verbs.command import Command
from runbooks.verbs.http import Http
from runbooks.verbs.registry import reader_of
from runbooks.verbs.rollback import Restore, Rollback
from runbooks.verbs.step import NoData
from runbooks.where import Where

Fields = Mapping[str, Any]


def read_runbook(document: Fields, source: str) -> Runbook:
    """Build the runbook; raises SettingsError naming file, field, value and bound."""
    where = Where(source)
    return Runbook(
        name=document["runbook"],
        summary=document["summary"],
        owner=document["owner"],
        max_runtime=Duration.read(document["max_runtime"], where.at("max_runtime")),
        trigger=_trigger(document["trigger"]),
        confirm=_confirm(document["confirm"], where.at("confirm")),
        steps=tuple(
            _step(seq, fields, where.at("steps").at(seq - 1)) for seq, fields in enumerate(document["steps"], start=1)
        ),
        rollback=_rollback(document["rollback"], where.at("rollback")) if "rollback" in document else None,
        notify=Notify(
            when=tuple(NotifyWhen(moment) for moment in document["notify"]["when"]), to=tuple(document["notify"]["to"])
        ),
        tests=tuple(
            read_test(fields, where.at("tests").at(index)) for index, fields in enumerate(document.get("tests", []))
        ),
        digest=digest(document),
        source=source,
    )


def _trigger(fields: Fields) -> Trigger:
    alerts = {
        label: (values,) if isinstance(values, str) else tuple(values) for label, values in fields["alerts"].items()
    }
    return Trigger(alerts, fields["target"]["queue_label"])


def _confirm(fields: Fields, where: Where) -> Confirm:
    no_data = fields.get("no_data")
    return Confirm(
        any_of=tuple(Condition.read(text, where.at("any").at(index)) for index, text in enumerate(fields["any"])),
        no_data=None if no_data is None else NoData(no_data),
    )


def _step(seq: int, fields: Fields, where: Where) -> Step:
    ((word, params),) = fields.items()
    here = where.at(word)
    return Step(
        seq=seq,
        params=reader_of(word)(params, here),
        timeout=Duration.read(params["timeout"], here.at("timeout")),
        on_timeout=OnTimeout(params["on_timeout"]),
    )


def _rollback(fields: Fields, where: Where) -> Rollback:
    by_cause: dict[str, str] = {}
    for reason, causes in fields["reasons"].items():
        for index, cause in enumerate(causes):
            if cause in by_cause:
                here = where.at("reasons").at(reason).at(index)
                raise here.refuse(cause, f"which already leads to {by_cause[cause]}", "A cause has one reason.")
            by_cause[cause] = reason
    hooks = tuple(_hook(hook, where.at("hooks").at(index)) for index, hook in enumerate(fields.get("hooks", [])))
    restore = tuple(Restore(name) for name in fields.get("restore", []))
    return Rollback(to=fields["to"], reasons=by_cause, hooks=hooks, restore=restore)


def _hook(fields: Fields, where: Where) -> Http | Command:
    return Command.read(fields, where) if "name" in fields else Http.read(fields, where)
