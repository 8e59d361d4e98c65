"""What came out of a campaign: the figures, the survivors with their reasons, and a file for later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from tests.mutation.mutants import Mutant
from tests.mutation.reasons import Reasons

GOAL = 0.95


class Fate(StrEnum):
    """Name what became of a mutant."""

    KILLED = "killed"  # a test failed
    TIMED_OUT = "timed out"  # a test that ends otherwise did not
    SURVIVED = "survived"
    UNREACHED = "unreached"  # no test gets there: it survives without being tried
    DOUBTFUL = "doubtful"  # the test that failed fails on the unaltered library too


@dataclass(frozen=True)
class Outcome:
    """Hold one mutant's fate, by which test, and how many tests were run of those that reach it."""

    mutant: Mutant
    fate: Fate
    test: str = ""
    ran: int = 0
    reach: int = 0
    words: str = ""
    seconds: float = 0.0

    @property
    def killed(self) -> bool:
        return self.fate in {Fate.KILLED, Fate.TIMED_OUT}


@dataclass(frozen=True)
class Report:
    """Judge the outcomes of a campaign against the listed reasons."""

    found: int
    outcomes: Sequence[Outcome]
    reasons: Reasons
    stale: Sequence[tuple[str, str, str, str]] = ()

    @property
    def survivors(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if not outcome.killed]

    @property
    def unlisted(self) -> list[Outcome]:
        return [outcome for outcome in self.survivors if not self.reasons.of(outcome.mutant)]

    @property
    def listed_but_killed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.killed and self.reasons.of(outcome.mutant)]

    @property
    def share_killed(self) -> float:
        return sum(outcome.killed for outcome in self.outcomes) / max(1, len(self.outcomes))

    @property
    def passes(self) -> bool:
        return bool(self.outcomes) and not self.unlisted and self.share_killed >= GOAL

    def lines(self) -> Iterator[str]:
        """Give the report as text, the verdict last."""
        for outcome in self.survivors:
            reason = self.reasons.of(outcome.mutant)
            tried = f"{outcome.ran} of {outcome.reach} tests that reach it were run"
            yield f"{'equivalent' if reason else 'SURVIVOR'} {outcome.mutant}"
            yield f"    {reason or f'{outcome.fate}; {tried}'}"
        for outcome in self.listed_but_killed:
            yield f"LISTED, YET KILLED {outcome.mutant}"
            yield f"    by {outcome.test}; take its reason out of reasons.yaml"
        for key in self.stale:
            yield f"LISTED, YET GONE {' | '.join(key)}"
        yield from self._tables()

    def _tables(self) -> Iterator[str]:
        files = Counter(outcome.mutant.file for outcome in self.outcomes)
        killed = Counter(outcome.mutant.file for outcome in self.outcomes if outcome.killed)
        listed = Counter(one.mutant.file for one in self.survivors if self.reasons.of(one.mutant))
        yield f"{'file':<18}{'tried':>7}{'killed':>8}{'equivalent':>12}{'unlisted':>10}"
        for file, tried in sorted(files.items()):
            unlisted = tried - killed[file] - listed[file]
            yield f"{file:<18}{tried:>7}{killed[file]:>8}{listed[file]:>12}{unlisted:>10}"
        tried, dead, known = len(self.outcomes), sum(killed.values()), sum(listed.values())
        yield (
            f"{self.found} mutants found, {tried} tried, {dead} killed ({self.share_killed:.1%}, goal {GOAL:.0%}), "
            f"{known} survive with a reason, {tried - dead - known} without"
        )

    def write(self, path: Path) -> None:
        """Write every outcome as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                **{name: value for name, value in asdict(one.mutant).items() if name not in {"mark", "start", "end"}},
                "fate": one.fate,
                "by": one.test,
                "ran": one.ran,
                "reach": one.reach,
                "words": one.words,
                "seconds": round(one.seconds, 3),
                "reason": self.reasons.of(one.mutant),
            }
            for one in self.outcomes
        ]
        body = {"found": self.found, "tried": len(rows), "share_killed": self.share_killed, "mutants": rows}
        path.write_text(json.dumps(body, indent=1, ensure_ascii=False), encoding="utf-8")
