"""What the exploration's properties look at: a row with the gate as it reads before, after adoption, and after."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property

from sluicegate.gate import (
    DrainState,
    GateState,
    PinReason,
    RawEdit,
    RollbackReason,
    Stored,
    admits,
    effective,
    effective_pin,
    pulls_backlog,
)
from sluicegate.gate_events import Answer, Apply, Beside, Event, HandEdit, Happening, OpenRun, Person, Step, Trigger
from tests.gate_events import Exploration, Row

_TIGHTNESS = {DrainState.ADMIT: 0, DrainState.REJECT_NEW: 1, DrainState.RECOVERING: 2, DrainState.DRAIN: 3}
TIGHTENING_EDITS = frozenset({RawEdit.REJECT_NEW, RawEdit.DRAIN, RawEdit.CLOSED})


@dataclass(eq=False)
class View:
    """Read one state as workers, producers and people would."""

    state: GateState

    @cached_property
    def readable(self) -> bool:
        return self.state.stored is Stored.OK and not self.state.behind

    @cached_property
    def reading(self) -> DrainState:
        return effective(self.state)

    @cached_property
    def tightness(self) -> int:
        return _TIGHTNESS[self.reading]

    @cached_property
    def stored_tightness(self) -> int:
        """Give the tightness of what the last move wrote; unreadable or behind counts as drain."""
        return _TIGHTNESS[self.state.drain_state if self.readable else DrainState.DRAIN]

    @cached_property
    def admits(self) -> bool:
        return admits(self.state)

    @cached_property
    def pulls(self) -> bool:
        return pulls_backlog(self.state)

    @cached_property
    def pin(self) -> PinReason | None:
        return effective_pin(self.state)

    @cached_property
    def edited(self) -> bool:
        return self.state.raw is not RawEdit.NONE or self.state.raw_admission is not RawEdit.NONE

    @cached_property
    def live(self) -> bool:
        return self.state.recovery_live

    @cached_property
    def adopted(self) -> View:
        """Give the state as the next move must find it (contract §6, hand edits), worked out here a second time.

        The tightest of the stored gate and the edits that tighten stands, pinned, or rolls a live run back; all other
        edits are written back. Raw `recovering` is none that tightens.
        """
        state = self.state
        if not self.readable or not self.edited:
            return self
        readings = [state.drain_state]
        if state.raw in (RawEdit.DRAIN, RawEdit.REJECT_NEW):
            readings.append(DrainState(state.raw.value))
        if state.raw_admission is RawEdit.CLOSED:
            readings.append(DrainState.REJECT_NEW)
        tightest = max(readings, key=_TIGHTNESS.__getitem__)
        clean = replace(state, raw=RawEdit.NONE, raw_admission=RawEdit.NONE)
        if tightest is state.drain_state:
            return View(clean)
        if not state.recovery_live:
            return View(replace(clean, drain_state=tightest, pin=PinReason.HAND_EDIT, green=False, ramp=False))
        return View(
            replace(
                clean,
                drain_state=DrainState.DRAIN,
                rollback_reason=RollbackReason.MANUAL_OPERATOR_HOLD,
                pin=PinReason.ROLLED_BACK,
                green=False,
                ramp=False,
                rolling_back=True,
            )
        )


@dataclass(slots=True)
class Seen:
    """Hold one explored row with its views; `base` is the state that the event's own effect starts from."""

    row: Row
    before: View
    base: View
    after: View
    event: Event
    answer: Answer

    @property
    def by_person(self) -> bool:
        return isinstance(self.event, Person) or (
            isinstance(self.event, OpenRun) and self.event.trigger is Trigger.PERSON
        )

    @property
    def by_controller(self) -> bool:
        return type(self.event).__name__ in ("Apply", "Overdue") or (
            isinstance(self.event, OpenRun) and self.event.trigger is Trigger.TIMER
        )

    @property
    def by_executor(self) -> bool:
        return isinstance(self.event, Step | Beside)

    @property
    def is_move(self) -> bool:
        """Say whether the library's move code saw the event; hand edits and what befalls the data go past it."""
        return not isinstance(self.event, HandEdit | Happening)

    @property
    def untouched(self) -> bool:
        """Say whether the event left the gate as adoption left it."""
        return self.after is self.base or self.after.state == self.base.state

    @property
    def gets_looser(self) -> bool:
        return self.after.tightness < self.base.tightness

    @property
    def hysteresis(self) -> bool:
        """Say whether this is the one opening that the controller may make by itself."""
        event, state = self.event, self.before.state
        if not isinstance(event, Apply) or self.before.edited:
            return False
        fresh_proof = event.action == "admit" and event.held and not event.stale
        at_rest = state.run is None and state.pin is None and state.rollback_reason is None and not state.duplicates
        return fresh_proof and at_rest and state.drain_state is DrainState.REJECT_NEW


class Viewer:
    """Turn explored rows into what the properties look at; each state is read once."""

    def __init__(self) -> None:
        self._views: dict[int, View] = {}

    def see(self, row: Row) -> Seen:
        """Give the row with its views; the base of a data event or a raw edit is the state itself."""
        before = self._view(row.before)
        moves = not isinstance(row.event, HandEdit | Happening)
        base = before.adopted if moves else before
        return Seen(row, before, base, self._view(row.after), row.event, row.answer)

    def _view(self, state: GateState) -> View:
        view = self._views.get(id(state))
        if view is None:
            view = self._views[id(state)] = View(state)
        return view


@dataclass
class Explored:
    """Hold the finished exploration and everything it saw."""

    exploration: Exploration = field(repr=False)
    seen: list[Seen] = field(repr=False)

    @classmethod
    def whole(cls) -> Explored:
        """Explore the real rule to its end."""
        exploration, viewer = Exploration(), Viewer()
        return cls(exploration, [viewer.see(row) for row in exploration.walk()])

    def of(self, kinds: tuple[type[object], ...]) -> list[Seen]:
        """Give the rows of these kinds of event, all rows for none."""
        return [row for kind in kinds for row in self._by_kind[kind]] if kinds else self.seen

    @cached_property
    def _by_kind(self) -> dict[type[object], list[Seen]]:
        rows: dict[type[object], list[Seen]] = defaultdict(list)
        for seen in self.seen:
            rows[type(seen.event)].append(seen)
        return rows
