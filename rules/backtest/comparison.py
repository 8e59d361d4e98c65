"""What would other settings have changed over the same history? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rules.backtest.harm import Incident
from rules.backtest.replay import Firing
from rules.backtest.run import Backtest, Result


class Effect(StrEnum):
    """Name what becomes of a page."""

    APPEARS = "appears"  # it would have come, and did not
    VANISHES = "vanishes"  # it would not have come, and did
    MOVES = "moves"  # it would have begun or ended at another time


@dataclass(frozen=True, slots=True)
class PageChange:
    """Hold what becomes of one page of an alert; `for_nothing` is what it is after, or was where it vanishes.

    What is not about deadlines is never for nothing, and never about harm either.
    """

    alert: str
    effect: Effect
    before: Firing | None
    after: Firing | None
    for_nothing: bool
    about_deadlines: bool = True

    @property
    def at_ms(self) -> int:
        """Give when the page begins, after the change where it is still there."""
        page = self.after or self.before
        return page.from_ms if page is not None else 0

    @property
    def earlier_ms(self) -> int:
        """Give how much earlier it begins; negative where later, 0 where it appears or vanishes."""
        return self.before.from_ms - self.after.from_ms if self.before is not None and self.after is not None else 0

    @property
    def longer_ms(self) -> int:
        """Give how much later it ends; negative where earlier, 0 where it appears or vanishes."""
        return self.after.to_ms - self.before.to_ms if self.before is not None and self.after is not None else 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Hold two replays of one history."""

    before: Backtest
    after: Backtest

    @property
    def changes(self) -> tuple[PageChange, ...]:
        """Give every page that differs, by its time."""
        after = {one.tried.name: one for one in self.after.alerts}
        before = {one.tried.name: one for one in self.before.alerts}
        found = [
            change
            for name in dict.fromkeys([*before, *after])
            for change in _of_alert(name, before.get(name), after.get(name))
        ]
        return tuple(sorted(found, key=lambda change: (change.at_ms, change.alert)))

    @property
    def false_pages(self) -> tuple[int, int]:
        """Count the false pages before and after."""
        before, after = (sum(one.false_pages for one in each.alerts) for each in (self.before, self.after))
        return before, after

    @property
    def incidents(self) -> tuple[Incident, ...]:
        return self.before.harm.incidents


def _of_alert(name: str, before: Result | None, after: Result | None) -> Iterator[PageChange]:
    gone = list(before.pages if before else ())
    about = any(one.tried.about_deadlines for one in (before, after) if one is not None)
    for page in after.pages if after else ():
        for_nothing = after is not None and page in after.in_vain
        was = _overlapping(page, gone)
        if was is None:
            yield PageChange(name, Effect.APPEARS, None, page, for_nothing, about)
            continue
        gone.remove(was)
        if was != page:
            yield PageChange(name, Effect.MOVES, was, page, for_nothing, about)
    for page in gone:
        yield PageChange(name, Effect.VANISHES, page, None, before is not None and page in before.in_vain, about)


def _overlapping(page: Firing, among: Sequence[Firing]) -> Firing | None:
    return next((one for one in among if one.from_ms <= page.to_ms and one.to_ms >= page.from_ms), None)
