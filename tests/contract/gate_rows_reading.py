"""Read a queue's keys back into the gate's state, without the library: what the keys say, not what it makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import redis

from sluicegate import keys
from sluicegate.gate import DrainState, GateState, PinReason, RawEdit, RollbackReason, Runbook, Stored
from sluicegate.keys import Keys
from tests.contract.gate_rows_storage import RUN_ID

Pipeline = Any  # redis-py leaves its pipelines untyped
Entry = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """Hold what a queue's keys say: the state, which of its fields could be read, the epoch, and the moves logged."""

    state: GateState
    unread: frozenset[str]
    epoch: int | None
    log: tuple[Entry, ...]
    raw: tuple[str | None, str | None]
    record: Entry


_READS = 9


def ask(pipe: Pipeline, at: Keys) -> None:
    """Queue the commands that `answers` takes apart."""
    for name in (keys.DRAIN_STATE, keys.ADMISSION, keys.EPOCH, keys.LOCK_RUN):
        pipe.get(at(name))
    for name in (keys.GATE, keys.DUPLICATES, keys.SETTINGS):
        pipe.hgetall(at(name))
    pipe.hgetall(at.run(RUN_ID))
    pipe.xrange(at(keys.GATE_LOG))


def answers(replies: list[Any]) -> Iterator[list[Any]]:
    """Split a pipeline's replies by queue."""
    for start in range(0, len(replies), _READS):
        yield replies[start : start + _READS]


def reading(parts: list[Any], other_run: Entry, seen_epoch: int, now_ms: int, second_drain_ms: int) -> Reading:
    """Make a state of the keys; a reply that is an error is a key of a wrong type, and holds nothing."""
    readable: list[Any] = [None if isinstance(part, redis.exceptions.ResponseError) else part for part in parts]
    raw_state, raw_admission, epoch_text, lock, record, duplicates, settings, run, log = readable
    record = record or {}
    entries = tuple(fields for _, fields in log or ())
    number = int(epoch_text) if (epoch_text or "").isdecimal() else None
    stored = _stored(raw_state, raw_admission, number, parts[4], record, settings)
    known = _of_record(record, now_ms, second_drain_ms)
    unread = frozenset({"drain_state", "rollback_reason", "pin", "green", "ramp", "reopened"} - known.keys())
    held = run if lock == RUN_ID else other_run
    live = held.get("state") if lock else None
    state = replace(
        GateState(stored=stored, **known),
        run=Runbook(held["runbook"]) if live in ("running", "rolling_back") else None,
        rolling_back=live == "rolling_back",
        **_of_duplicates(duplicates or {}),
    )
    if stored is Stored.OK:
        state = replace(state, behind=seen_epoch > (number or 0), **_edits(state.drain_state, raw_state, raw_admission))
    return Reading(state, unread, number, entries, (raw_state, raw_admission), record)


def _stored(
    raw_state: str | None,
    raw_admission: str | None,
    epoch: int | None,
    gate_reply: object,
    record: Entry,
    settings: Entry,
) -> Stored:
    if epoch is None and not gate_reply and not settings:
        return Stored.UNINITIALISED
    whole = (
        raw_state in set(DrainState)
        and raw_admission in ("open", "closed")
        and epoch is not None
        and settings
        and record.keys() >= _FIELDS
        and all(record[name].isdecimal() for name in _NUMBERS)
        and record["drain_state"] in set(DrainState)
    )
    return Stored.OK if whole else Stored.UNREADABLE


_TIMES = frozenset({"since", "ok_since", "dwell_ms", "left_reject_at", "reopened_at", "limit_at"})
_NUMBERS = _TIMES | {"window", "canary_ok", "canary_failed", "green_backlog"}
_FIELDS = _NUMBERS | {"drain_state", "rollback_reason", "pin", "pin_note", "green", "ramp", "reason", "actor"}


def _of_record(record: Entry, now_ms: int, second_drain_ms: int) -> dict[str, Any]:
    known: dict[str, Any] = {}
    if record.get("drain_state") in set(DrainState):
        known["drain_state"] = DrainState(record["drain_state"])
    if "rollback_reason" in record:
        known["rollback_reason"] = RollbackReason(record["rollback_reason"]) if record["rollback_reason"] else None
    if "pin" in record:
        known["pin"] = PinReason(record["pin"]) if record["pin"] else None
    if "green" in record:
        known["green"] = record["green"] == "1"
    if "ramp" in record:
        known["ramp"] = record["ramp"] != ""
    if record.get("reopened_at", "").isdecimal():
        at_ms = int(record["reopened_at"])
        known["reopened"] = at_ms > 0 and now_ms - at_ms < second_drain_ms
    return known


def _of_duplicates(duplicates: Entry) -> dict[str, Any]:
    confirmed, acknowledged, audited = (
        int(duplicates.get(name, 0)) for name in ("confirmed", "acknowledged", "audited")
    )
    unacknowledged = confirmed > acknowledged
    return {"duplicates": unacknowledged, "audited": unacknowledged and audited >= confirmed}


def _edits(drain_state: DrainState, raw_state: str | None, raw_admission: str | None) -> dict[str, Any]:
    mirrored = "open" if drain_state is DrainState.ADMIT else "closed"
    return {
        "raw": RawEdit.NONE if raw_state == drain_state.value else RawEdit(str(raw_state)),
        "raw_admission": RawEdit.NONE if raw_admission == mirrored else RawEdit(str(raw_admission)),
    }
