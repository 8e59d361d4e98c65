"""Read what callers, provider and onlooker wrote: one folder, a JSON object a line, nothing taken for granted.

caller-*.jsonl   asked, answered, seen: what was sent, what was answered, what was told of a job at the end
provider.jsonl   what the provider did, by idempotency key
gate.jsonl       what an onlooker read of the gate
deeds.jsonl      what was done to the parts, and what a named person ordered
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row")


class BadLog(Exception):
    """Name the line that is not what it should be: a log that can't be read proves nothing."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Hold one submission and its answer; times in Unix seconds by the caller's clock.

    `other`: it was sent with another payload than the key's first. `answer` is accepted, refused, unanswered (nobody
    knows what became of it) or trouble (an answer that no caller is promised).
    """

    caller: str
    number: int
    key: str
    job_class: str
    effects: str
    why: str
    other: bool
    sent: float
    heard: float = math.inf
    answer: str = "unanswered"
    job_id: str = ""
    reason: str = ""
    retry_after_s: float | None = None
    replayed: bool = False

    @property
    def fresh(self) -> bool:
        """Tell whether the key was decided by this very ask."""
        return self.answer in ("accepted", "refused") and not self.replayed


@dataclass(frozen=True, slots=True)
class Seen:
    """Hold what a caller was told that asked for a job at that instant: its state, `gone`, or `unanswered`."""

    at: float
    key: str
    state: str


@dataclass(frozen=True, slots=True)
class Effect:
    """Hold one thing that the provider did."""

    at: float
    key: str | None
    job_class: str
    canary: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """Hold one look at the gate; `drain_state` is empty where it could not be read."""

    at: float
    drain_state: str
    pin: str


@dataclass(frozen=True, slots=True)
class Deed:
    """Hold one thing that was done: kill, start, order, cut or fault, and to whom or what.

    lost_gate: a gate move that had been seen is in the data no more.
    """

    at: float
    what: str
    whom: str
    lost_gate: bool


@dataclass(frozen=True, slots=True)
class Logs:
    """Hold all logs of one run, each sorted by time."""

    asks: tuple[Ask, ...]
    seen: tuple[Seen, ...]
    effects: tuple[Effect, ...]
    readings: tuple[Reading, ...]
    deeds: tuple[Deed, ...]


def read_logs(folder: Path) -> Logs:
    """Read a run's logs; raises BadLog for a line that is torn, foreign or answers nothing, and for a missing log."""
    callers = sorted(folder.glob("caller-*.jsonl"))
    if not callers:
        raise BadLog(f"{folder} holds no log of a caller.")
    asks: list[Ask] = []
    seen: list[Seen] = []
    for path in callers:
        own_asks, own_seen = _caller(path)
        asks += own_asks
        seen += own_seen
    return Logs(
        tuple(sorted(asks, key=lambda ask: ask.sent)),
        tuple(sorted(seen, key=lambda look: look.at)),
        _rows(folder / "provider.jsonl", _effect),
        _rows(folder / "gate.jsonl", _reading),
        _rows(folder / "deeds.jsonl", _deed),
    )


def _caller(path: Path) -> tuple[list[Ask], list[Seen]]:
    asked: dict[int, Mapping[str, Any]] = {}
    answered: dict[int, Mapping[str, Any]] = {}
    seen: list[Seen] = []
    for place, line in read_lines(path):
        kind = line.get("kind")
        if kind == "seen":
            seen.append(_built(place, partial(_seen, line)))
            continue
        into = {"asked": asked, "answered": answered}.get(str(kind))
        number = line.get("ask")
        if into is None or not isinstance(number, int) or number in into:
            raise BadLog(f"{place} is neither asked, answered nor seen, or repeats a number.")
        into[number] = line
    if stray := answered.keys() - asked.keys():
        raise BadLog(f"{path.name}: answer {min(stray)} answers nothing that was asked.")
    asks = [
        _built(f"{path.name}, ask {number}", partial(_ask, path.stem, number, sent, answered.get(number)))
        for number, sent in asked.items()
    ]
    return asks, seen


def _ask(caller: str, number: int, sent: Mapping[str, Any], answer: Mapping[str, Any] | None) -> Ask:
    ask = Ask(
        caller,
        number,
        str(sent["key"]),
        str(sent["class"]),
        str(sent["effects"]),
        str(sent["why"]),
        bool(sent["other"]),
        float(sent["at"]),
    )
    if answer is None:
        return ask
    word = str(answer["answer"])
    if word not in ("accepted", "refused", "unanswered", "trouble"):
        raise ValueError(word)
    wait = answer["retry_after_s"]
    return Ask(
        ask.caller,
        ask.number,
        ask.key,
        ask.job_class,
        ask.effects,
        ask.why,
        ask.other,
        ask.sent,
        float(answer["at"]),
        word,
        str(answer["job_id"]),
        str(answer["reason"]),
        None if wait is None else float(wait),
        bool(answer["replayed"]),
    )


def _seen(line: Mapping[str, Any]) -> Seen:
    return Seen(float(line["at"]), str(line["key"]), str(line["state"]))


def _effect(line: Mapping[str, Any]) -> Effect:
    key = line["key"]
    return Effect(float(line["ts"]), None if key is None else str(key), str(line["class"]), bool(line["canary"]))


def _reading(line: Mapping[str, Any]) -> Reading:
    return Reading(float(line["at"]), str(line["drain_state"]), str(line["pin"]))


def _deed(line: Mapping[str, Any]) -> Deed:
    return Deed(float(line["at"]), str(line["what"]), str(line["whom"]), bool(line["lost_gate"]))


def _rows(path: Path, parse: Callable[[Mapping[str, Any]], Row]) -> tuple[Row, ...]:
    return tuple(_built(place, partial(parse, line)) for place, line in read_lines(path))


def read_lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give each line of a file with its place; raises BadLog for one that is missing, torn or no object."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadLog(f"{path.name} can't be read: {error.strerror}.") from error
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{path.name}, line {number}"
        try:
            raw = json.loads(line)
        except ValueError as error:
            raise BadLog(f"{place} is not JSON.") from error
        if not isinstance(raw, dict):
            raise BadLog(f"{place} is no object.")
        yield place, raw


def _built(place: str, build: Callable[[], Row]) -> Row:
    try:
        return build()
    except (KeyError, TypeError, ValueError) as error:
        raise BadLog(f"{place} lacks what belongs into it, or holds something else: {error!r}.") from error
