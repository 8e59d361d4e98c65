"""What earlier campaigns saw: which places each test reaches, and which test killed a mutant.

Both are kept by the text of the function they are about, so that a change of one function leaves what is known of the
others. It only decides which tests run first and, where a campaign goes on, what need not be tried again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutation.choosing import Reach
from tests.mutation.mutants import Mutant
from tests.mutation.report import Fate, Outcome
from tests.mutation.sources import Sources


@dataclass
class Reached:
    """Hold what each test was seen to reach, in `reach.json`."""

    path: Path
    tests: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, folder: Path, sources: Sources) -> Reached:
        """Read what was seen; of a function that has changed since, every mark counts as reached.

        So does every mark of the functions that it calls and that were not there before.
        """
        path = folder / "reach.json"
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        now: dict[tuple[str, str], list[int]] = {}
        for mark, (file, function, _) in sorted(sources.places.items()):
            now.setdefault((file, function), []).append(mark)
        then = known.get("digests", {})

        @cache
        def added_under(function: str) -> list[int]:
            called = sources.reached_from({function})
            return [mark for place in called if " ".join(place) not in then for mark in now.get(place, ())]

        meant: dict[int, list[int]] = {}
        for mark, (file, function, nth) in enumerate(known.get("places", ())):
            marks = now.get((file, function), [])
            same = then.get(f"{file} {function}") == sources.digests.get((file, function))
            meant[mark] = marks[nth : nth + 1] if same else [*marks, *added_under(function)]
        tests = known.get("tests", {})
        for seen in tests.values():
            seen["marks"] = sorted({new for old in seen["marks"] for new in meant[old]})
        return cls(path, tests)

    def knows(self, test: str, digest: str) -> bool:
        return bool(self.tests.get(test, {}).get("digest") == digest)

    def note(self, test: str, digest: str, seconds: float, marks: tuple[int, ...]) -> None:
        self.tests[test] = {"digest": digest, "seconds": seconds, "marks": list(marks)}

    def reaches(self, wanted: Iterable[str]) -> dict[str, Reach]:
        """Give what the wanted tests reach, without those that reach nothing."""
        seen = {name: self.tests[name] for name in wanted}
        return {
            name: Reach(name, one["seconds"], frozenset(one["marks"])) for name, one in seen.items() if one["marks"]
        }

    def write(self, sources: Sources) -> None:
        order = sorted(sources.places)
        number = {mark: place for place, mark in enumerate(order)}
        tests = {name: {**seen, "marks": [number[mark] for mark in seen["marks"]]} for name, seen in self.tests.items()}
        digests = {f"{file} {function}": digest for (file, function), digest in sources.digests.items()}
        body = {"places": [sources.places[mark] for mark in order], "digests": digests, "tests": tests}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(body), encoding="utf-8")


@dataclass
class Known:
    """Hold the last outcome of each mutant, a line each in `outcomes.jsonl`, as soon as it is there."""

    path: Path
    by_key: dict[tuple[str, ...], dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> Known:
        path = folder / "outcomes.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return cls(path, {tuple(row["key"]): row for row in map(json.loads, lines)})

    def killer(self, mutant: Mutant) -> str:
        """Give the test that killed a mutant last time, empty without one."""
        row = self.by_key.get(mutant.key, {})
        return str(row.get("by", "")) if row.get("fate") in {Fate.KILLED, Fate.TIMED_OUT} else ""

    def standing(self, mutant: Mutant, function: str, tests: Mapping[str, str]) -> Outcome | None:
        """Give how a mutant was killed, where neither its function nor the file of the test has changed since."""
        killer = self.killer(mutant)
        row = self.by_key.get(mutant.key, {})
        if not killer or row["function"] != function or row["test"] != tests.get(killer):
            return None
        return Outcome(mutant, Fate(row["fate"]), killer, row["ran"], row["reach"], row["words"], row["seconds"])

    def note(self, outcome: Outcome, function: str, test: str) -> None:
        """Add an outcome; `function` and `test` are the fingerprints of what it is about and of what killed it."""
        row = {
            "key": outcome.mutant.key,
            "function": function,
            "fate": outcome.fate,
            "by": outcome.test,
            "test": test,
            "ran": outcome.ran,
            "reach": outcome.reach,
            "words": outcome.words,
            "seconds": round(outcome.seconds, 3),
        }
        self.by_key[outcome.mutant.key] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
