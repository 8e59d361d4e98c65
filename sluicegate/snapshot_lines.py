"""Say what a line of a snapshot has to hold to be restored. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sluicegate.functions import VERSION
from sluicegate.job import FINAL_STATES, Effects, JobState, effects_of
from sluicegate.snapshot_file import FORMAT
from sluicegate.snapshot_records import JobLine

Row = Mapping[str, Any]

_OPEN_STATES = frozenset(state.value for state in JobState if state not in FINAL_STATES)
_JOB_NUMBERS = ("deadline", "attempt", "retries", "losses", "fence", "rev", "admitted_at", "eligible", "ready_at")
# As ZADD reads one, which takes none that is infinite; of the Python kind "nan" and "1_0" are numbers, too.
_is_score = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,2})?", re.ASCII).fullmatch
# No record of a job has a third of them.
_MOST_FIELDS = 100
# The end of the year 9999, and the most that Lua reads without loss.
_LAST_MS, _MOST = 253_402_300_799_999, 9_999_999_999_999_999
_MOST_DIGITS = 16
# What the record of a job has that waits since it came.
_OF_FRESH = frozenset({"state", "class", "deadline", "fp", "admitted_at", "cost", "declared"})
_DECISION_NUMBERS = ("retry_at", "at")
_TEXT = frozenset({str})
# The tables without which no function can work with a contract.
_TABLES = ("classes", "cost_classes", "thresholds", "timings", "ramp_percents")


class NotRight(Exception):
    """Say what is wrong with a line; whoever reads the file adds which."""


@dataclass(frozen=True, slots=True)
class Header:
    """Hold what a snapshot says of its queue; `at_ms` by that server's clock."""

    queue: str
    at_ms: int
    epoch: int
    drain_state: str
    digest: str
    contract: str
    confirmed: int
    acknowledged: int
    kill: str
    endpoint: Mapping[str, str]

    def unsafe_of(self, names: Iterable[str]) -> frozenset[str]:
        """Give those of some classes whose jobs must not be repeated by themselves."""
        contract = json.loads(self.contract)
        return frozenset(name for name in names if effects_of(contract, name) is Effects.UNSAFE)


@dataclass(slots=True)
class Counts:
    """Count jobs by (state, class, cost class), and refusals."""

    jobs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    refusals: int = 0

    def add(self, records: Iterable[tuple[str, str, str]]) -> None:
        """Count jobs, each by its state, class and cost class."""
        self.jobs.update(records)

    @property
    def total(self) -> int:
        return self.jobs.total()

    @property
    def classes(self) -> list[str]:
        return sorted({job_class for _, job_class, _ in self.jobs})

    @property
    def costs(self) -> list[str]:
        return sorted({cost for _, _, cost in self.jobs})

    def of(self, states: frozenset[str], classes: frozenset[str] | None = None) -> int:
        """Count the jobs in some states, and of some classes."""
        return sum(
            count
            for (state, job_class, _), count in self.jobs.items()
            if state in states and (classes is None or job_class in classes)
        )


def header_of(body: Row) -> Header:
    """Parse the first line; raises NotRight, also for another version of the format."""
    if body.get("format") != FORMAT:
        raise NotRight(f"is of format {body.get('format')!r}, and this version reads format {FORMAT} only")
    if body.get("records") != VERSION:
        raise NotRight(f"holds records of layout {body.get('records')!r}, and this version puts back {VERSION!r} only")
    duplicates = body.get("duplicates")
    if not isinstance(duplicates, dict):
        raise NotRight("does not say which duplicates were confirmed")
    header = Header(
        queue=_text(body, "queue"),
        at_ms=_number(body, "at_ms"),
        epoch=int(_digits(body, "epoch")),
        drain_state=_text(body, "drain_state"),
        digest=_text(body, "settings_digest"),
        contract=_text(body, "contract"),
        confirmed=_number(duplicates, "confirmed"),
        acknowledged=_number(duplicates, "acknowledged"),
        kill=_text(body, "kill"),
        endpoint=_texts(body, "endpoint"),
    )
    if header.at_ms > _LAST_MS:
        raise NotRight("holds an at_ms that no calendar has")
    _check_contract(header.contract)
    return header


def _check_contract(text: str) -> None:
    try:
        contract = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotRight("holds no contract: the queue was not open, or its settings were lost") from error
    missing = [
        name for name in _TABLES if not isinstance(contract, dict) or not isinstance(contract.get(name), dict | list)
    ]
    if missing:
        raise NotRight(f"holds a contract without {missing[0]}")
    try:
        sound = all(_is_class(declared) for declared in contract["classes"].values())
    except (AttributeError, KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise NotRight("holds a contract with a class that is none")


def _is_class(declared: Mapping[str, Any]) -> bool:
    """Say whether a class has what decides when a job of it is started, and whether again."""
    return Effects(declared["effects"]) in Effects and type(declared["deadline_ms"]) is int


def check_job(row: Row) -> tuple[str, str, str]:
    """Check a job as it was stored, and give its state, class and cost class; raises NotRight.

    A field that this version does not know is put back as it is: nothing reads it.
    """
    job_id, record = _text(row, "id"), _texts(row, "record")
    state, job_class, cost = record.get("state"), record.get("class"), record.get("cost", "-")
    if not job_id or state not in _OPEN_STATES:
        raise NotRight(f"holds a job {job_id!r} in the state {state!r}")
    if not job_class or not cost:
        raise NotRight(f"holds the job {job_id!r} without its {'cost' if job_class else 'class'}")
    if record.get("canary"):
        raise NotRight(f"holds the canary {job_id!r} of a run")
    if len(record) > _MOST_FIELDS:
        raise NotRight(f"holds the job {job_id!r} with {len(record)} fields")
    since = "eligible" if "eligible" in record else "admitted_at"
    needed = {"deadline", since, *(("ready_at",) if state == JobState.DELAYED else ())}
    for name in _JOB_NUMBERS:
        if name in record or name in needed:
            _digits(record, name)
    _text(record, "fp")
    _text(row, "payload")
    if not _is_score(_text(row, "score")):
        raise NotRight(f"holds the job {job_id!r} without its place")
    return state, job_class, cost


def all_right(lines: Sequence[JobLine]) -> bool:
    """Say whether all of some jobs are right, of those that have not moved since they came by one look."""
    numbers: list[str] = []
    for line in lines:
        record = line.record
        get = record.get
        if record.keys() <= _OF_FRESH and get("state") == "ready" and get("class") and get("cost", "-") and line.id:
            numbers += (get("deadline", ""), get("admitted_at", ""), line.score)
            if "fp" not in record:
                return False
        elif not is_right(line):
            return False
    if not numbers:
        return True
    lengths, text = set(map(len, numbers)), "".join(numbers)
    return min(lengths) > 0 and max(lengths) <= _MOST_DIGITS and text.isascii() and text.isdigit()


def is_right(line: JobLine) -> bool:
    """Say whether a job as it is stored can be written down, and would be put back."""
    try:
        msgspec.json.encode(line)
        check_job(msgspec.to_builtins(line))
    except (NotRight, UnicodeEncodeError):
        return False
    return True


def check_refusal(row: Row) -> None:
    """Check a stored refusal; raises NotRight."""
    decision = _texts(row, "decision")
    if not _text(row, "key") or decision.get("accepted") != "0" or not decision.get("job_id"):
        raise NotRight(f"holds a refusal of {row.get('key')!r} that is none")
    for name in ("fp", "reason"):
        _text(decision, name)
    for name in _DECISION_NUMBERS:
        _digits(decision, name)
    if "ends_at" in row:
        _digits(row, "ends_at")


def check_correction(body: Row) -> str:
    """Check a job that was read again, and give its id; raises NotRight."""
    job_id, row = _text(body, "id"), body.get("row")
    if row is not None:
        if not isinstance(row, dict) or row.get("id") != job_id:
            raise NotRight(f"corrects the job {job_id!r} with another")
        check_job(row)
    return job_id


def _text(body: Row, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise NotRight(f"holds a {name} that is no text")
    return value


def _texts(body: Row, name: str) -> Mapping[str, str]:
    """Take a mapping from text to text; Lua writes an empty one as {} or []."""
    value = body.get(name)
    if value == []:
        value = {}
    if not isinstance(value, dict) or not _TEXT.issuperset(map(type, value.values())):
        raise NotRight(f"holds a {name} that is no mapping of texts")
    return value


def _number(body: Row, name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
        raise NotRight(f"holds a {name} that is no whole number")
    return value


def _digits(body: Row, name: str) -> str:
    """Take a whole number of at most 16 digits, written as text: Lua reads no more without loss."""
    value = body.get(name)
    if not isinstance(value, str) or not (value.isascii() and value.isdigit()) or len(value) > _MOST_DIGITS:
        raise NotRight(f"holds a {name} that is no whole number")
    return value
