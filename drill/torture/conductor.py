"""Strike the running parts as planned, be the named person where one is needed, and write down what was done."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from drill.effects import LineLog
from drill.torture.onlooker import FileSize, Onlooker
from drill.torture.parts import ACTOR, AUTOMATION, SERVER, Parts
from drill.torture.plan import Plan, Strike, StrikeKind, strikes
from sluicegate.errors import SluicegateError, StoreError
from sluicegate.gate import DrainState

_TURN_S = 0.05
_AWAY_S = (0.3, 1.2)
# What a machine that dies may lose with everysec: what was written in the last second.
_UNFORCED_S = 1.0
# From a gate move to the kill, so that every process has seen it; and how long nobody opens after a loss.
_SEEN_WITHIN_S = 0.8
_WATCHED_S = 4.0
_HOLD_S = 1.5
_PERSON_COMES_S = 2.0
_INCIDENT_MOST_S = 10.0
_OPEN_WITHIN_S = 30.0
# Past its last ask a caller on a busy machine may still have some under way.
_ENDS_WITHIN_S = 90.0


class Deeds:
    """Write the log of what was done, each with its time in Unix seconds."""

    def __init__(self, path: Path) -> None:
        self._log = LineLog(path)

    def did(self, what: str, whom: str, *, lost_gate: bool = False, note: str = "") -> None:
        """Write one down."""
        line = {"at": time.time(), "what": what, "whom": whom, "lost_gate": lost_gate, "note": note}
        self._log.append(json.dumps(line, separators=(",", ":")) + "\n")


class Conductor:
    """Run one torture on running parts; `wait` pauses, and may raise to end it early."""

    def __init__(
        self, parts: Parts, plan: Plan, onlooker: Onlooker, deeds: Deeds, wait: Callable[[float], None]
    ) -> None:
        self._parts = parts
        self._plan = plan
        self._onlooker = onlooker
        self._deeds = deeds
        self._wait = wait
        self._random = random.Random(plan.seed + 2)
        self._pinned_since: float | None = None
        self._nobody_opens_until = 0.0
        self._incident_on = False
        self._strike: Mapping[StrikeKind, Callable[[Strike], None]] = {
            StrikeKind.KILL_WORKER: lambda _: self._restart(self._random.choice(parts.worker_names())),
            StrikeKind.KILL_API: lambda _: self._restart(self._random.choice(parts.api_names())),
            StrikeKind.KILL_AUTOMATION: lambda _: self._restart(AUTOMATION),
            StrikeKind.KILL_SERVER: self._kill_server,
            StrikeKind.HOLD: lambda _: self._hold(),
            StrikeKind.INCIDENT: lambda _: self._incident(),
        }

    def run(self, callers: tuple[str, ...]) -> None:
        """Strike until nothing is left to strike; when the callers have ended, let every job be looked at."""
        for strike in strikes(self._plan):
            while time.time() < self._plan.starts_at + strike.at_s:
                self._turn()
            self._strike[strike.kind](strike)
        self._wait_for(callers, self._plan.asks_until - time.time() + _ENDS_WITHIN_S)
        self._wait_for((self._parts.start_looker(),), 3 * self._plan.settles_within_s + _ENDS_WITHIN_S)

    def _wait_for(self, names: tuple[str, ...], within_s: float) -> None:
        ends_at = time.monotonic() + within_s
        while running := [name for name in names if self._parts.children.is_running(name)]:
            if time.monotonic() > ends_at:
                raise SluicegateError(f"The torture's callers {', '.join(running)} did not end in time.")
            self._turn()

    def _turn(self) -> None:
        self._wait(_TURN_S)
        self._open_what_waits()
        if self._incident_on and self._reads(DrainState.ADMIT):
            # The run's hook took every fault away.
            self._incident_on = False
            self._parts.faults_as_always()

    def _restart(self, name: str) -> None:
        self._parts.children.kill(name)
        self._deeds.did("kill", name)
        self._parts.children.restart(name)
        self._deeds.did("start", name)

    def _kill_server(self, strike: Strike) -> None:
        """Kill it, let it lose what its setting allows, and start it on what is left."""
        before = None
        if strike.loses_gate:
            before = self._close_an_open_gate()
        killed_at = time.monotonic()
        self._parts.children.kill(SERVER)
        if self._plan.loses:
            earlier = self._onlooker.size_before(killed_at - _UNFORCED_S)
            cut = cut_to(earlier if before is None or earlier is None or earlier.size < before.size else before)
            self._deeds.did("cut", SERVER, note=f"{cut} bytes were not forced to the disk yet")
            if strike.loses_gate and cut == 0:
                raise SluicegateError("The torture could not take away what the server had not forced to the disk.")
        self._deeds.did("kill", SERVER, lost_gate=strike.loses_gate)
        self._wait(self._random.uniform(*_AWAY_S))
        self._parts.children.restart(SERVER)
        self._deeds.did("start", SERVER)
        if strike.loses_gate:
            self._nobody_opens_until = time.monotonic() + _WATCHED_S

    def _close_an_open_gate(self) -> FileSize | None:
        """Make the move that is to be lost, and let everybody see it; gives the file as it was before."""
        ends_at = time.monotonic() + _OPEN_WITHIN_S
        while time.monotonic() < ends_at:
            self._turn()
            if not self._reads(DrainState.ADMIT):
                continue
            self._wait(_UNFORCED_S)
            before = self._onlooker.size_before(time.monotonic())
            if self._order("drain", "closed a moment before the machine dies") == "moved":
                self._wait(_SEEN_WITHIN_S)
                return before
        raise SluicegateError(f"The torture found no open gate within {_OPEN_WITHIN_S:g} s, so none could be lost.")

    def _hold(self) -> None:
        self._order("reject", "a moment without new work")
        self._wait(_HOLD_S)
        self._order("open", "go on")

    def _incident(self) -> None:
        """Let the provider fail until the gate drains; the run's hook ends it."""
        self._parts.incident()
        self._deeds.did("fault", "provider", note="most calls fail")
        ends_at = time.monotonic() + _INCIDENT_MOST_S
        while time.monotonic() < ends_at and not self._reads(DrainState.DRAIN):
            self._wait(_TURN_S)
            self._open_what_waits()
        self._incident_on = self._reads(DrainState.DRAIN)
        self._deeds.did("seen", "gate", note="drain" if self._incident_on else "no drain")
        if not self._incident_on:
            self._parts.faults_as_always()

    def _reads(self, state: DrainState) -> bool:
        latest = self._onlooker.latest
        return latest is not None and latest.gate.drain_state == state

    def _open_what_waits(self) -> None:
        """Be the named person that a pinned gate waits for; not before it has been watched after a loss."""
        latest = self._onlooker.latest
        now = time.monotonic()
        if latest is None or latest.gate.pin is None:
            self._pinned_since = None
            return
        self._pinned_since = self._pinned_since or now
        if now - self._pinned_since >= _PERSON_COMES_S and now >= self._nobody_opens_until:
            self._pinned_since = None
            # A run that waits for a person, such as an audit of duplicates, ends with the opening.
            self._order("open" if latest.gate.run is None else "open_end_run", "looked at it")

    def _order(self, order: str, reason: str) -> str:
        """Give an order as a person would, again until it is answered; gives the answer."""
        while True:
            self._deeds.did("order", order, note=reason)
            try:
                answer = self._parts.store.order(order, ACTOR, reason)
            except StoreError:
                self._wait(_TURN_S)
                continue
            self._deeds.did("answer", order, note=answer.answer)
            return answer.answer


def cut_to(left: FileSize | None) -> int:
    """Cut a dead server's file to the length it had; gives how many bytes went."""
    if left is None:
        return 0
    gone = left.path.stat().st_size - left.size
    if gone > 0:
        os.truncate(left.path, left.size)
    return max(0, gone)
