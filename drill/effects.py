"""The provider's own record of what it did: the only source for "nothing was done twice"."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sluicegate.errors import UsageError


@dataclass(frozen=True)
class Effect:
    """Record that the provider did something: ts in Unix seconds, `effect` its running number in the log.

    A call without an idempotency key has an effect each time, recorded with key None.
    """

    ts: float
    key: str | None
    effect: int
    job_class: str | None
    canary: bool

    def to_line(self) -> str:
        """Return the effect as one JSON line."""
        return _line(
            {"ts": self.ts, "key": self.key, "effect": self.effect, "class": self.job_class, "canary": self.canary}
        )

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Parse a line of the log; raises ValueError for anything else."""
        try:
            raw = json.loads(line)
            return cls(float(raw["ts"]), raw["key"], int(raw["effect"]), raw["class"], bool(raw["canary"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no effect: {line!r}") from error


@dataclass(frozen=True)
class Call:
    """Record one answered call: latency_s from its arrival, `replayed` when the answer was an earlier one's."""

    ts: float
    key: str | None
    job_class: str | None
    canary: bool
    status: int
    latency_s: float
    replayed: bool

    def to_line(self) -> str:
        """Return the call as one JSON line."""
        return _line(
            {
                "ts": self.ts,
                "key": self.key,
                "class": self.job_class,
                "canary": self.canary,
                "status": self.status,
                "latency_s": round(self.latency_s, 4),
                "replayed": self.replayed,
            }
        )


def _line(record: dict[str, object]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


class LineLog:
    """Append whole lines to a file, each in one write: what was written is there after a kill."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(
                f"The log {path} can't be written: {error.strerror}.",
                "Name a file in a folder that this user can write to.",
            ) from error
        self._end_torn_line()

    def append(self, line: str) -> None:
        """Write one line that ends in a newline."""
        os.write(self._file, line.encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _end_torn_line(self) -> None:
        """Give a last line that a full disk or a lost machine cut short an end, so that the next stands alone."""
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")


def calls_path(effects: Path) -> Path:
    """Return where the calls are logged, beside the effects: `provider.jsonl` → `provider.calls.jsonl`."""
    return effects.with_name(f"{effects.stem}.calls{effects.suffix}")


def read_effects(path: Path) -> tuple[Effect, ...]:
    """Return the effects in a log, oldest first; a line that was cut short is left out, a missing log is empty."""
    if not path.exists():
        return ()
    effects = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            effects.append(Effect.from_line(line))
        except ValueError:
            continue  # it was never whole, so its call was never answered
    return tuple(effects)


def duplicate_keys(effects: Iterable[Effect]) -> dict[str, int]:
    """Return key → number of effects for the keys that have more than one."""
    counts = Counter(effect.key for effect in effects if effect.key is not None)
    return {key: count for key, count in counts.items() if count > 1}
