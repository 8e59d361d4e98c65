"""Say what a producer may submit, within which bounds, and how a submission is told from another. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from sluicegate.errors import UsageError

# A key is part of key names and travels in an HTTP header: printable ASCII without spaces.
_TOKEN = re.compile(r"[!-~]+")
_RESERVED_PREFIX = "canary:"

MAX_KEY = 200
MAX_CLASS = 64
MAX_PAYLOAD_BYTES = 262_144
# In ms it is still a whole number that every client reads exactly.
_FARTHEST_S = 1e11

_TAKE = {"idempotency key": "Take a name or a number of your own system."}

# What nearly all are, told by one look; whatever else there is, `_check_token` tells what is wrong with it.
_is_key = re.compile(rf"(?!{_RESERVED_PREFIX})[!-~]{{1,{MAX_KEY}}}").fullmatch
_is_class = re.compile(rf"(?!{_RESERVED_PREFIX})[!-~]{{1,{MAX_CLASS}}}").fullmatch


@dataclass(frozen=True, slots=True)
class Submission:
    """Hold one job as its producer asks for it, with the id it keeps for every repeat: its idempotency key.

    The deadline is an instant (`deadline_ms` of Redis TIME), a time from the decision (`deadline_in_ms`), or, both 0,
    the class's.
    """

    job_id: str
    job_class: str
    payload: str
    cost_class: str = ""
    deadline_ms: int = 0
    deadline_in_ms: int = 0

    @property
    def idempotency_key(self) -> str:
        """Give the key, which is the job's id."""
        return self.job_id

    @property
    def fingerprint(self) -> str:
        """Tell whether a repeated key carries the same work: 128 bits of the SHA-256 of class and payload."""
        digest = hashlib.sha256(f"{self.job_class}\0{self.payload}".encode())
        return digest.hexdigest()[:32]

    @property
    def size(self) -> int:
        """Give the payload's size in bytes."""
        return len(self.payload) if self.payload.isascii() else len(self.payload.encode())

    def words(self) -> tuple[str, ...]:
        """Render it as admit.lua takes it."""
        wishes = ""
        if self.deadline_ms or self.deadline_in_ms or self.cost_class:
            wishes = f"{self.deadline_ms} {self.deadline_in_ms} {self.cost_class}"
        return (self.job_id, self.job_class, self.fingerprint, self.payload, wishes)


def build_submission(
    job_class: str,
    payload: str,
    *,
    job_id: str,
    cost_class: str | None = None,
    deadline_s: float | None = None,
    deadline_ts: float | None = None,
) -> Submission:
    """Check every field; raises UsageError naming the field, its value and its bound."""
    if job_id.__class__ is not str or not _is_key(job_id):
        _check_token("idempotency key", job_id, MAX_KEY)
    if job_class.__class__ is not str or not _is_class(job_class):
        _check_token("class", job_class, MAX_CLASS)
    if cost_class is not None:
        _check_token("cost class", cost_class, MAX_CLASS)
    if payload.__class__ is not str or not payload.isascii() or len(payload) > MAX_PAYLOAD_BYTES:
        _check_payload(job_id, payload)
    if deadline_s is not None and deadline_ts is not None:
        raise UsageError("A job has one deadline: give deadline_s or deadline_ts, not both.")
    return Submission(
        job_id,
        job_class,
        payload,
        cost_class or "",
        0 if deadline_ts is None else _milliseconds("deadline_ts", deadline_ts),
        0 if deadline_s is None else _milliseconds("deadline_s", deadline_s),
    )


def one_identity(job_id: str | None, idempotency_key: str | None) -> str | None:
    """Give the id that a caller named, or None; the job's id and its idempotency key are one thing under two names."""
    if job_id is not None and idempotency_key is not None and job_id != idempotency_key:
        raise UsageError(
            f"The job id {job_id!r} and the idempotency key {idempotency_key!r} differ, and a job has one identity.",
            "Give one of them: the key becomes the id.",
        )
    return job_id if job_id is not None else idempotency_key


def _check_payload(job_id: str, payload: str) -> None:
    if not isinstance(payload, str):
        raise UsageError(
            f"The payload of job {job_id} is {type(payload).__name__}, not text.",
            "Give a str, json.dumps(…) for one; bytes as base64 text.",
        )
    try:
        size = len(payload) if payload.isascii() else len(payload.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"The payload of job {job_id} is not valid Unicode: {error.reason}.") from error
    if size > MAX_PAYLOAD_BYTES:
        raise UsageError(
            f"The payload of job {job_id} has {size} bytes, more than {MAX_PAYLOAD_BYTES}.",
            "Store it elsewhere and submit where it is.",
        )


def _check_token(name: str, value: str, longest: int) -> None:
    if not isinstance(value, str):
        raise UsageError(f"The {name} {value!r} is {type(value).__name__}, not text.", "Give a str.")
    if not value or len(value) > longest or not _TOKEN.fullmatch(value):
        shown = value if len(value) <= longest else f"{value[:longest]}…"
        raise UsageError(
            f"The {name} {shown!r} is not 1 to {longest} printable ASCII characters without spaces.",
            _TAKE.get(name, "Take one that the contract declares."),
        )
    if value.startswith(_RESERVED_PREFIX):
        raise UsageError(f"The {name} {value!r} starts with {_RESERVED_PREFIX!r}.", "That start is kept for canaries.")


def _milliseconds(name: str, seconds: float) -> int:
    try:
        # The comparison is false for NaN, and the bound keeps the sum with now exact.
        within = 0 < seconds < _FARTHEST_S
    except TypeError as error:
        raise UsageError(f"{name} is {type(seconds).__name__}, not a number.", "Give seconds as a number.") from error
    if not within:
        raise UsageError(
            f"{name} is {seconds:g}, not a time above 0 s and below {_FARTHEST_S:g} s.",
            "Leave it out to get the class's own deadline.",
        )
    return max(1, round(seconds * 1000))
