"""Check a snapshot's lines in C as they are parsed: nearly all of them are right and take this way (contract §7.2).

What is not taken here may still be right, or wrong with a reason to be named: snapshot_lines.py decides that.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import Annotated, Literal

import msgspec

# Lua reads no more digits than 16 without loss. That they are digits is looked at for many lines at once: a pattern for
# each would take as long as all the rest.
Digits = Annotated[str, msgspec.Meta(min_length=1, max_length=16)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class CheckedRecord(msgspec.Struct, forbid_unknown_fields=True):
    """Name the fields of a job's record (docs/reference/keys.md); one of before has more that say nothing."""

    state: Literal["ready", "delayed", "running", "unknown", "blocked"]
    job_class: Name = msgspec.field(name="class")
    deadline: Digits
    admitted_at: Digits
    fp: str
    cost: Name = "-"
    rev: Digits = "1"
    fence: Digits = "0"
    attempt: Digits = "0"
    retries: Digits = "0"
    losses: Digits = "0"
    eligible: Digits = "0"
    ready_at: Digits = ""
    canary: Literal[""] = ""
    declared: str = ""
    worker: str = ""
    started_at: str = ""
    lease_end: str = ""
    epoch: str = ""
    window: str = ""
    intent: str = ""
    intent_fence: str = ""
    intent_worker: str = ""
    intent_attempt: str = ""
    confirmed: str = ""
    reference: str = ""
    settled: str = ""
    late: str = ""
    cause: str = ""
    ended_at: str = ""
    restored_fence: str = ""
    restored_state: str = ""
    restored_at: str = ""


class CheckedJob(msgspec.Struct, tag_field="kind", tag="job"):
    """Check a job's line, but for one thing: a delayed job says when it is ready."""

    id: Name
    score: Digits
    record: CheckedRecord
    payload: str


class _CheckedDecision(msgspec.Struct):
    job_id: Name
    accepted: Literal["0"]
    fp: str
    reason: str
    retry_at: Digits
    at: Digits


class CheckedRefusal(msgspec.Struct, tag_field="kind", tag="refusal"):
    """Check a refusal's line."""

    key: Name
    decision: _CheckedDecision
    ends_at: Digits


Checked = CheckedJob | CheckedRefusal
_JOB_DIGITS = attrgetter(
    "score", *(f"record.{name}" for name, kind in CheckedRecord.__annotations__.items() if kind == "Digits")
)
_REFUSAL_DIGITS = attrgetter("ends_at", "decision.retry_at", "decision.at")
_decode = msgspec.json.Decoder(CheckedJob | CheckedRefusal).decode_lines


def checked(lines: bytes) -> list[Checked] | None:
    """Parse whole lines; None where one of them is not plainly right."""
    try:
        rows = _decode(lines)
    except (msgspec.MsgspecError, RecursionError):
        return None
    # An empty line is passed over by the decoder, and is none of a snapshot's.
    if len(rows) != lines.count(b"\n"):
        return None
    digits = "".join(chain.from_iterable(map(_digits_of, rows)))
    return rows if not digits or (digits.isascii() and digits.isdigit()) else None


def _digits_of(row: Checked) -> tuple[str, ...]:
    """Give whatever has to be a number."""
    digits: tuple[str, ...] = (_JOB_DIGITS if row.__class__ is CheckedJob else _REFUSAL_DIGITS)(row)
    return digits
