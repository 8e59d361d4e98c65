"""Let one queue live through one story after another, and be the named person where one is needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import httpx

from drill.runs_torture.by_hand import ByHand
from drill.runs_torture.outside import Hook
from drill.runs_torture.parts import ACTOR, Parts
from drill.runs_torture.plan import Story
from drill.webhook import firing
from rules.generate import catalogue
from runbooks.library import load_builtin
from sluicegate.errors import StoreError
from sluicegate.gate import DrainState, Runbook
from sluicegate.producer import Producer
from sluicegate.records import AlertName
from sluicegate.run_replies import RunHistory, RunRecord
from sluicegate.submission import Submission
from sluicegate.telemetry import Telemetry

Given = TypeVar("Given")

_LOOK_S = 0.1
_RUN_OPENS_WITHIN_S = 12.0
_RUN_ENDS_WITHIN_S = 150.0
_SETTLES_WITHIN_S = 40.0
_PERSON_COMES_S = 1.5
_LOAD_EVERY_S = 0.25
# Beside runs are many: a few looks back are enough to meet the last two that held the lock.
_LOOKED_AT = 30
_FINAL = frozenset({"succeeded", "rolled_back", "superseded", "aborted", "lost"})
_RECOVERY = "drain-and-recover"
_AUDIT = "rollback-and-audit"
_HOOKS = {
    Story.HOOK_LOSES_ANSWER: Hook.LOSES_ANSWER,
    Story.HOOK_BUSY: Hook.BUSY,
    Story.USELESS_HOOK: Hook.USELESS,
}


class Director:
    """Run in a thread of its own.

    For whoever strikes: `tail` is the newest journal entry that it has seen, `refused` the stale writes by then.
    """

    def __init__(self, parts: Parts, queue: str, stories: Iterator[Story], wanted: Callable[[], bool]) -> None:
        self.queue = queue
        self.tail: tuple[str, str, str] | None = None
        self.refused = 0
        self.told: list[tuple[str, str]] = []
        self.error: BaseException | None = None
        self._parts = parts
        self._stories = stories
        self._wanted = wanted
        self._store = parts.connect(queue)
        self._hand = ByHand(parts.redis_url, self._store.keys)
        self._producer = Producer(self._store)
        self._jobs = 0
        self._loaded_at = 0.0
        self._breaking = False
        self._thread = threading.Thread(target=self._run, name=f"director-{queue}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, within_s: float) -> None:
        """Wait for the story under way to end."""
        self._thread.join(within_s)

    def _run(self) -> None:
        try:
            while self._wanted():
                self._tell(next(self._stories))
        except BaseException as error:  # noqa: BLE001 (the main thread reads it and fails the torture)
            self.error = error
        finally:
            self.tail = None
            self._store.close()
            self._hand.close()

    def _tell(self, story: Story) -> None:
        """Live through one story, from an open gate to an open gate."""
        self._parts.behave(self.queue, provider_fails=False, hook=_HOOKS.get(story, Hook.MENDS))
        self._until(self._at_rest, _PERSON_COMES_S, otherwise=self._open_as_a_person)
        before = self._newest()
        if story is Story.BY_PERSON:
            self._open_run()
        else:
            self._parts.behave(self.queue, provider_fails=True, hook=_HOOKS.get(story, Hook.MENDS))
            if story is Story.FLAPPING:
                self._flap()
        if not self._until(lambda: self._opened_since(before), _RUN_OPENS_WITHIN_S):
            self._open_run()
        run = self._opened_since(before)
        if run is None:
            return
        self._meddle(story, run.run_id)
        self._parts.behave(self.queue, provider_fails=False, hook=_HOOKS.get(story, Hook.MENDS))
        self._until(self._nothing_runs, _RUN_ENDS_WITHIN_S, otherwise=lambda: self._order("abort"))
        self.told.append((story.value, run.run_id))

    def _meddle(self, story: Story, run: str) -> None:
        """Do what the story asks for while the run goes on."""
        if story is Story.ABORTED:
            self._when(run, lambda history: history.run.step >= 1 + self._jobs % 6)
            self._order("abort")
        elif story is Story.HAND_EDIT:
            self._when(run, lambda history: history.run.verb in ("canary", "burn_down", "reopen"))
            self._hand.drain()
        elif story is Story.DUPLICATE:
            self._when(run, lambda history: history.run.step >= 2 + self._jobs % 5)
            key = f"torture-{self._jobs}"
            self._quietly(lambda: self._store.confirm_duplicate(key, actor=ACTOR, note="seen at the provider"))
            self._audit()
        elif story is Story.KILL_SWITCH:
            self._when(run, lambda history: history.run.step >= 3)
            self._quietly(lambda: self._store.kill_switch(on=True, actor=ACTOR, reason="no run, please"))
            self._until(self._nothing_runs, _SETTLES_WITHIN_S)
            self._until(lambda: self._quietly(self._switch_off), _SETTLES_WITHIN_S)
        elif story is Story.NAN_GATE:
            self._when(run, lambda history: history.run.verb in ("burn_down", "reopen"))
            self._write_over()
        elif story is Story.USELESS_HOOK:
            self._until(self._nothing_runs, _SETTLES_WITHIN_S)
        elif story is Story.BREAKS_AGAIN:
            self._when(run, lambda history: history.run.verb in ("burn_down", "reopen"))
            self._parts.behave(self.queue, provider_fails=True, hook=Hook.MENDS)
            self._breaking = True
            self._until(self._nothing_runs, _SETTLES_WITHIN_S)
            self._breaking = False

    def _write_over(self) -> None:
        """Make the provider's counts unreadable for a moment; a gate in the middle of it has no sample."""
        names = self._hand.write_over_counts()
        self._pause(2.0)
        self._hand.take_away(names)

    def _audit(self) -> None:
        """Acknowledge the duplicates in the audit that takes the run's place."""

        def audited() -> bool:
            for record in self._holders():
                if record.runbook == _AUDIT and record.state == "running" and record.verb == "approve":
                    said = partial(self._store.approve, record.run_id, "approve", actor=ACTOR, reason="looked at")
                    self._quietly(said)
            return self._nothing_runs()

        self._until(audited, _SETTLES_WITHIN_S)

    def _flap(self) -> None:
        """Tell of the alert, of its end and of it again, each twice, before Alertmanager does."""
        settings = self._parts.settings[self.queue]
        alert = next(one for one in catalogue(settings) if one.name is AlertName.PROVIDER_ERRORS_HIGH)
        fires = firing(alert, datetime.now(UTC))
        for body in (fires, fires, _resolved(fires), _resolved(fires), firing(alert, datetime.now(UTC))):
            self._quietly(partial(self._parts.notify, body))

    # --- looking -----------------------------------------------------------------------------------------------------

    def _at_rest(self) -> bool:
        seen = self._observed()
        if seen is None:
            return False
        gate = seen.gate
        resting = gate.drain_state == DrainState.ADMIT and gate.ramp_percent is None and gate.run is None
        return resting and not gate.pin and gate.duplicates_unacknowledged == 0

    def _nothing_runs(self) -> bool:
        self._look()
        seen = self._observed()
        return seen is not None and seen.gate.run is None

    def _observed(self) -> Telemetry | None:
        """Read the queue, and count what was refused."""
        seen = self._quietly(self._store.observe)
        if seen is not None:
            self.refused = int(seen.counters.get("fenced_steps", 0))
        return seen

    def _holders(self) -> list[RunRecord]:
        """Give the newest runs that hold, or held, the lock, newest first; others go on beside them."""
        records = self._quietly(lambda: self._store.runs(_LOOKED_AT)) or ()
        return [one for one in records if one.runbook in set(Runbook)]

    def _newest(self) -> int:
        return max((record.started_at_ms for record in self._holders()), default=0)

    def _opened_since(self, before_ms: int) -> RunRecord | None:
        opened = [one for one in self._holders() if one.started_at_ms > before_ms and one.runbook == _RECOVERY]
        return opened[0] if opened else None

    def _look(self) -> RunHistory | None:
        """See the newest run, and keep what its journal ends with."""
        records = self._holders()
        history = self._quietly(partial(self._store.run, records[0].run_id)) if records else None
        if history is None or history.run.state in _FINAL or not history.journal:
            self.tail = None
            return history
        last = history.journal[-1]
        self.tail = (f"{last.verb}:{last.phase}", history.run.owner, last.entry_id)
        return history

    def _when(self, run: str, holds: Callable[[RunHistory], bool]) -> None:
        """Wait until a run is where the story wants it, or has ended."""

        def there() -> bool:
            history = self._look()
            if history is None or history.run.run_id != run or history.run.state in _FINAL:
                return history is not None
            return holds(history)

        self._until(there, _SETTLES_WITHIN_S)

    # --- acting ------------------------------------------------------------------------------------------------------

    def _open_run(self) -> None:
        book = load_builtin(_RECOVERY)
        run = f"by-hand-{self.queue}-{time.time_ns()}"
        self._quietly(
            lambda: self._store.open_run(
                {"runbook": book.name, "trigger": "person", "run": run, "actor": ACTOR, "reason": "to prove the path",
                 "confirmed": True, "digest": book.digest, "episode": ""}
            )
        )  # fmt: skip

    def _open_as_a_person(self) -> None:
        self._order("open")

    def _order(self, order: str) -> None:
        self._quietly(lambda: self._store.order(order, ACTOR, f"{order}: the torture goes on"))

    def _switch_off(self) -> bool:
        self._store.kill_switch(on=False, actor=ACTOR, reason="runs, please")
        return True

    def _pause(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            self._load()
            time.sleep(_LOOK_S)

    def _until(self, holds: Callable[[], object], within_s: float, otherwise: Callable[[], None] | None = None) -> bool:
        """Wait while jobs go on coming; `otherwise` is done every time that `within_s` is over without it.

        Without it the wait ends then, and gives False.
        """
        ends_at = time.monotonic() + within_s
        while not holds():
            self._load()
            time.sleep(_LOOK_S)
            if time.monotonic() < ends_at:
                continue
            if otherwise is None:
                return False
            otherwise()
            ends_at = time.monotonic() + within_s
        return True

    def _load(self) -> None:
        """Submit a job now and then, as producers would."""
        if time.monotonic() - self._loaded_at < _LOAD_EVERY_S / (4 if self._breaking else 1):
            return
        self._loaded_at, self._jobs = time.monotonic(), self._jobs + 1
        job_class = "lint-fix" if self._jobs % 3 else "test-patch"
        self._quietly(lambda: self._producer.submit_many([Submission(f"job-{self._jobs}", job_class, "{}")]))

    def _quietly(self, act: Callable[[], Given]) -> Given | None:
        """Do what a server that is away, or is starting, may refuse; None where it did."""
        try:
            return act()
        except (StoreError, httpx.HTTPError):
            return None


def _resolved(body: Mapping[str, Any]) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    alerts = [{**alert, "status": "resolved", "endsAt": now} for alert in body["alerts"]]
    return {**body, "status": "resolved", "alerts": alerts}
