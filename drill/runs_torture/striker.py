"""Strike the parts that all queues share: replicas at fresh entries of journals, servers, messengers."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from drill.effects import LineLog
from drill.runs_torture.contract import LEASE_S
from drill.runs_torture.director import Director
from drill.runs_torture.outside import Post
from drill.runs_torture.parts import ALERTMANAGERS, EXPORTER, SERVER, Parts
from drill.runs_torture.plan import Mischief, Plan

_WAIT_S = 0.02
_FRESH_WITHIN_S = 3.0
_BETWEEN_S = (0.6, 2.0)
_AWAY_S = (0.2, 1.0)
# Two leases: whoever wakes then has been replaced.
_STOPPED_S = (2.2 * LEASE_S, 3.0 * LEASE_S)
_POSTMAN_S = 5.0
_EXPORTER_AWAY_S = 4.0


class Striker:
    """Do one mischief after another on the main thread; `wait` pauses, and may raise to end it early."""

    def __init__(
        self, parts: Parts, plan: Plan, directors: Sequence[Director], log: Path, wait: Callable[[float], None]
    ) -> None:
        self.boundaries: Counter[str] = Counter()
        self.struck: Counter[Mischief] = Counter()
        self._parts = parts
        self._directors = directors
        self._log = LineLog(log)
        self._wait = wait
        self._random = random.Random(f"{plan.seed}/strikes")
        self._stopped: dict[str, float] = {}

    def strike(self, kind: Mischief) -> None:
        """Do one, and let what it needs come back."""
        self._resume_due()
        if kind in (Mischief.KILL_EXECUTOR, Mischief.STOP_EXECUTOR):
            self._strike_owner(kind)
        elif kind is Mischief.KILL_SERVER:
            self._kill_and_restart(SERVER, kind)
        elif kind is Mischief.RESTART_ALERTMANAGER:
            self._kill_and_restart(self._random.choice(ALERTMANAGERS), kind)
        elif kind is Mischief.DEAD_EXPORTER:
            self._kill_and_restart(EXPORTER, kind, away_s=_EXPORTER_AWAY_S)
        else:
            self._post(kind)
        self._pause(self._random.uniform(*_BETWEEN_S))

    def end(self) -> None:
        """Let everybody go on as if nothing had been."""
        for name in tuple(self._stopped):
            self._resume(name)
        self._parts.carry(Post.CARRIED)

    def _strike_owner(self, kind: Mischief) -> None:
        """Hit the replica that owns a run, right after an entry of its journal that was hit least so far."""
        found = self._fresh_entry()
        if found is None:
            return
        boundary, replica = found
        self.boundaries[boundary] += 1
        if kind is Mischief.KILL_EXECUTOR:
            self._kill_and_restart(replica, kind, boundary, self._random.uniform(*_AWAY_S))
            return
        self._parts.children.suspend(replica)
        self._did(kind, replica, boundary)
        self._stopped[replica] = time.monotonic() + self._random.uniform(*_STOPPED_S)

    def _fresh_entry(self) -> tuple[str, str] | None:
        """Wait for journals to grow; gives the rarest boundary of those that just did, and its owner's replica."""
        known = {director.queue: director.tail for director in self._directors}
        ends_at = time.monotonic() + _FRESH_WITHIN_S
        while time.monotonic() < ends_at:
            fresh = [one.tail for one in self._directors if one.tail is not None and one.tail != known[one.queue]]
            for boundary, owner, _ in sorted(fresh, key=lambda tail: self.boundaries[tail[0]]):
                replica = self._parts.replica_of(owner)
                if replica is not None and replica not in self._stopped and self._parts.children.is_running(replica):
                    return boundary, replica
            self._pause(_WAIT_S)
        return None

    def _kill_and_restart(self, name: str, kind: Mischief, note: str = "", away_s: float | None = None) -> None:
        self._parts.children.kill(name)
        self._did(kind, name, note)
        self._pause(self._random.uniform(*_AWAY_S) if away_s is None else away_s)
        self._parts.children.restart(name, within_s=60.0)

    def _post(self, kind: Mischief) -> None:
        posts = {
            Mischief.DROP_WEBHOOKS: Post.DROPPED,
            Mischief.DOUBLE_WEBHOOKS: Post.DOUBLED,
            Mischief.LOSE_ANSWERS: Post.UNANSWERED,
        }
        self._parts.carry(posts[kind])
        self._did(kind, "postman")
        self._pause(_POSTMAN_S)
        self._parts.carry(Post.CARRIED)

    def _pause(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            self._resume_due()
            self._wait(min(_WAIT_S * 2, max(0.0, ends_at - time.monotonic())))

    def _resume_due(self) -> None:
        for name, due in tuple(self._stopped.items()):
            if time.monotonic() >= due:
                self._resume(name)

    def _resume(self, name: str) -> None:
        del self._stopped[name]
        self._parts.children.resume(name)

    def _did(self, kind: Mischief, whom: str, note: str = "") -> None:
        self.struck[kind] += 1
        line = {"at": time.time(), "kind": kind.value, "whom": whom, "boundary": note}
        self._log.append(json.dumps(line, separators=(",", ":")) + "\n")
