"""Name every command about runs and the alerts that ask for them: one method each, and typed answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from sluicegate import replies, run_replies
from sluicegate.calls import Arguments, Calls, Coming
from sluicegate.errors import StoreError


class RunCalls(Calls):
    """Open, own, approve and end runs; keep notifications and their episodes."""

    def open_run(self, arguments: Arguments) -> replies.GateAnswer:
        """Ask for a run (see run.lua for the arguments)."""
        return replies.GateAnswer.of(self._call("open_run", arguments))

    def asked(self, runbook: str, keep_ms: int) -> run_replies.Asked:
        """Say what asking for a run would come to; reads, and writes nothing."""
        return run_replies.Asked.of(self._call("asked", {"runbook": runbook, "keep_ms": keep_ms}))

    def claim_run(self, executor: str, run: str, fence: str, beside: str = "") -> run_replies.RunClaim:
        """Own the live run that holds the lock, or the one of the runbook `beside`; or renew the ownership."""
        arguments = {"executor": executor, "run": run, "fence": fence, "beside": beside}
        return run_replies.RunClaim.of(self._call("claim_run", arguments))

    def commit_step(self, arguments: Arguments) -> run_replies.StepAnswer:
        """Make one effect of a run and its journal entry, under the fence (see run.lua for the arguments)."""
        return run_replies.StepAnswer.of(self._call("commit_step", arguments))

    def approve(self, run: str, step: str, *, actor: str, reason: str) -> str:
        """Give a person's word for the step that waits for it; moved, unchanged, not_waiting or gone."""
        return str(self._call("approve", {"run": run, "step": step, "actor": actor, "reason": reason})["answer"])

    def abort_beside(self, run: str, *, actor: str, reason: str) -> str:
        """End a run that holds no lock, as a named person; moved or gone."""
        return str(self._call("abort_beside", {"run": run, "actor": actor, "reason": reason})["answer"])

    def hold(self, run: str, hold_s: float | None, *, actor: str, reason: str) -> tuple[str, int]:
        """Hold a live recovery, for as long as the contract allows without a time; gives moved, gone or unreadable.

        The second is until when (ms, Redis TIME).
        """
        wanted_ms = 0 if hold_s is None else max(1, round(hold_s * 1000))
        body = self._call("hold", {"run": run, "ms": wanted_ms, "actor": actor, "reason": reason})
        return str(body["answer"]), int(body.get("until", 0))

    def resume(self, run: str, *, actor: str, reason: str) -> str:
        """Let a held run go on; moved, unchanged (it is not held), expired (it rolls back), gone or unreadable."""
        return str(self._call("resume", {"run": run, "actor": actor, "reason": reason})["answer"])

    def run(self, run: str) -> run_replies.RunHistory | None:
        """Give a run with its journal and approvals, or None."""
        body = self._call("run", {"run": run})
        if not body["found"]:
            return None
        journal = tuple(run_replies.JournalEntry.of(entry) for entry in replies.rows(body, "journal"))
        return run_replies.RunHistory(run_replies.RunRecord.of(body["run"]), journal, body.get("approvals") or {})

    def runs(self, limit: int = 20) -> tuple[run_replies.RunRecord, ...]:
        """Give the newest runs, newest first."""
        found = replies.rows(self._call("runs", {"limit": limit}), "runs")
        return tuple(run_replies.RunRecord.of(run) for run in found)

    def endpoint(self) -> str:
        """Give the provider that the workers are pointed at; empty for the one of their own settings."""
        return str(self._call("endpoint", {})["current"])

    # Alerts.

    def notify(self, source: str, group: str, alerts: Sequence[Arguments]) -> run_replies.Notified:
        """Keep one notification and open, touch or close its episodes (see episode.lua); at most 100 alerts."""
        kept = self.notify_many([(source, group, [alerts])])[0]
        if isinstance(kept, StoreError):
            raise kept
        return kept[0]

    def notify_many(
        self, notifications: Iterable[tuple[str, str, Iterable[Sequence[Arguments]]]]
    ) -> tuple[tuple[run_replies.Notified, ...] | StoreError, ...]:
        """Keep notifications, all on their way at once: one wait for the disk. Gives what came of each.

        A notification is its source, its group and its alerts in parts of at most 100.
        """
        coming: list[list[Coming]] = []
        try:
            for source, group, batches in notifications:
                coming.append([])
                for alerts in batches:
                    body = {"source": source, "group": group, "alerts": list(alerts)}
                    coming[-1].append(self._begin("notify", body))
            return tuple(self._kept(parts) for parts in coming)
        finally:
            for one in chain.from_iterable(coming):
                one.abandon()

    def _kept(self, parts: Sequence[Coming]) -> tuple[run_replies.Notified, ...] | StoreError:
        try:
            return tuple(run_replies.Notified.of(self._answered("notify", one)) for one in parts)
        except StoreError as error:
            return error

    def episodes(self) -> tuple[run_replies.Episode, ...]:
        """Give the open episodes, oldest first."""
        return tuple(run_replies.Episode.of(row) for row in replies.rows(self._call("episodes", {}), "episodes"))

    def episodes_looked(self, looks: Sequence[tuple[str, str, str]]) -> frozenset[str]:
        """Keep what looks at open episodes came to, each an id, the outcome and a run; gives the ids it is news of."""
        rows = [{"id": episode, "outcome": outcome, "run": run} for episode, outcome, run in looks]
        return frozenset(replies.rows(self._call("episodes_looked", {"looks": rows}), "changed"))
