"""Say what a job's record is made of where it is read as it is stored: its version, its container, its line. Pure.

P.score in sluicegate/functions/_portable.lua names the same containers, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sluicegate.job import FINAL_STATES, JobState

# The fields of a job's hash, by name.
Record = Mapping[str, str]
# Where a job stands: its id, its score in its container, as Redis writes it, and its version.
Place = tuple[str, str, str]

# What a version is made of, and what says whether a job travels at all.
VERSION_FIELDS = ("state", "rev", "fence", "intent_fence", "canary")
# Plain texts: to look a member up, and to compare with it, takes longer than all the rest of a version.
_READY, _RUNNING = JobState.READY.value, JobState.RUNNING.value
# That of a job that has not moved since it came, as most.
_FRESH = "ready:1"
_NONE_OF_OURS = frozenset({None, "", "refused", *(state.value for state in FINAL_STATES)})
_CONTAINERS = {
    JobState.DELAYED.value: "queue:delayed",
    JobState.RUNNING.value: "queue:leases",
    JobState.UNKNOWN.value: "queue:unknown",
    JobState.BLOCKED.value: "queue:blocked",
}


class JobLine(msgspec.Struct, tag_field="kind", tag="job"):
    """Hold a job as it is stored: the score in its container (as Redis writes it), its record and its payload."""

    id: str
    score: str
    record: dict[str, str]
    payload: str


class Correction(msgspec.Struct, tag_field="kind", tag="correction"):
    """Hold a job that moved while it was written down; without a row it has ended."""

    id: str
    row: JobLine | None


class Refusal(msgspec.Struct, tag_field="kind", tag="refusal"):
    """Hold a stored refusal; a file of before does not name when its record goes."""

    key: str
    decision: dict[str, str]
    ends_at: str = ""


class _Header(msgspec.Struct, tag_field="kind", tag="sluicegate-snapshot"):
    """Pass over the first line."""


class _End(msgspec.Struct, tag_field="kind", tag="end"):
    """Pass over the last line."""


Line = JobLine | Correction | Refusal
_KINDS = (JobLine, Correction, Refusal)
_decode = msgspec.json.Decoder(JobLine | Correction | Refusal | _Header | _End).decode_lines


def lines_in(text: bytes) -> list[Line]:
    """Parse whole lines, but not the first and the last of a file; raises msgspec.MsgspecError, and checks no value."""
    return [line for line in _decode(text) if isinstance(line, _KINDS)]


def version_of(
    state: str | None, rev: str | None, fence: str | None, intent_fence: str | None, canary: str | None
) -> str:
    """Give the version of a job by its VERSION_FIELDS; "" for what no snapshot holds: ended, or a run's canary.

    Whatever changes a job changes it; a renewed lease is no change, a recorded intent is one.
    """
    if state in _NONE_OF_OURS or canary:
        return ""
    version = f"running:{fence or ''}:{intent_fence or ''}" if state == _RUNNING else f"{state}:{rev or '1'}"
    # What is no text can't be kept, and a version is only compared.
    return version if version.isascii() else ascii(version)


def version_in(record: Record) -> str:
    """Give the version that a record has."""
    get = record.get
    if get("state") == _READY and "rev" not in record and "canary" not in record:
        return _FRESH
    return version_of(get("state"), get("rev"), get("fence"), get("intent_fence"), get("canary"))


def container_of(record: Record) -> str | None:
    """Name the sorted set that an open job stands in, without the queue's prefix; None for any other."""
    if record.get("state") == _READY:
        return f"queue:fifo:{record.get('class', '')}:{record.get('cost', '-')}"
    return _CONTAINERS.get(record.get("state", ""))
