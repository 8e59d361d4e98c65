"""What the gate must have done, by its own log."""

from __future__ import annotations

from itertools import pairwise

from drill.timeline import Timeline
from drill.verdict import Evidence, Expectation, Seen
from sluicegate.policy import Action, Figures, decide
from sluicegate.replies import GateLogEntry
from sluicegate.run_replies import RunHistory

# From a figure past its bound to a closed gate: a tick to see it, one more where the machine is busy, and the sample.
_CLOSED_WITHIN_TICKS = 3
_TIGHTENING = ("reject_new", "drain")

Move = tuple[str, str]


def _said(entry: GateLogEntry) -> str:
    return f"{entry.to_state} ({entry.reason})"


def went(*moves: Move) -> Expectation:
    """Compare the gate's changes of state, in order and with their reasons."""
    expected = " → ".join(f"{state} ({reason})" for state, reason in moves) or "no move"

    def look(evidence: Evidence) -> Seen:
        made = [(entry.to_state, entry.reason) for entry in evidence.moves]
        return Seen(made == list(moves), " → ".join(map(_said, evidence.moves)) or "no move")

    return Expectation("the gate moves in order", expected, look)


def ends(state: str, *, pin: str, rollback_reason: str = "") -> Expectation:
    """Compare the gate's last state, pin and rollback reason; '' for none."""
    expected = f"state={state} pin={pin or 'none'} rollback_reason={rollback_reason or 'none'}"

    def look(evidence: Evidence) -> Seen:
        latest = evidence.timeline.latest
        if latest is None:
            return Seen(ok=False, text="the gate was never read")
        gate = latest.telemetry.gate
        seen = f"state={gate.drain_state} pin={gate.pin or 'none'} rollback_reason={gate.rollback_reason or 'none'}"
        return Seen(seen == expected, seen)

    return Expectation("the gate ends", expected, look)


def every_opening_is_proven() -> Expectation:
    """Look for the record behind every opening: hysteresis, a run's gate, init, or a named person."""

    def look(evidence: Evidence) -> Seen:
        log = evidence.gate_log
        openings = [entry for entry in log if entry.to_state == "admit" and entry.from_state != "admit"]
        unproven = [_said(entry) for entry in openings if not _is_proven(entry, evidence.runs)]
        known = {entry.epoch for entry in log if entry.to_state == "admit"}
        unlogged = [epoch for epoch in _opened_epochs(evidence.timeline) if epoch not in known]
        said = [f"{len(openings)}: {', '.join(f'{_said(one)} by {one.actor}' for one in openings)}"]
        said += [f"without proof: {', '.join(unproven)}"] if unproven else []
        said += [f"seen open without a record: {unlogged}"] if unlogged else []
        return Seen(not unproven and not unlogged, "; ".join(said))

    return Expectation("every opening has its record", "hysteresis, a run's gate, init or a named person", look)


def _is_proven(entry: GateLogEntry, runs: tuple[RunHistory, ...]) -> bool:
    if entry.reason == "run_reopen":
        opened = [run for run in runs if run.run.run_id == entry.run]
        return any(line.verb == "reopen" and line.phase == "opened" for run in opened for line in run.journal)
    if entry.reason == "normal":
        return entry.from_state == "reject_new" and entry.actor == "controller"
    return entry.reason == "init" or (entry.reason.startswith("operator_open") and bool(entry.actor and entry.note))


def _opened_epochs(timeline: Timeline) -> list[int]:
    gates = [sample.gate for sample in timeline.samples]
    return [after.epoch for before, after in pairwise(gates) if after.drain_state == "admit" != before.drain_state]


def closes_in_time() -> Expectation:
    """Measure from the first figures that ask for it to the first closing move."""

    def look(evidence: Evidence) -> Seen:
        bound_s = _bound_s(evidence)
        closed = next((entry for entry in evidence.moves if entry.to_state in _TIGHTENING), None)
        thresholds = evidence.timeline.thresholds
        asked = (Action.REJECT_NEW, Action.DRAIN)
        signals = (
            sample.at_ms
            for sample in evidence.timeline.samples
            if decide(Figures.of(sample), thresholds).action in asked
        )
        signal = next(signals, None)
        if closed is None:
            return Seen(ok=False, text="admission never closed")
        # The controller may look, and close, before the drill's own next sample.
        took_s = max(0.0, (closed.at_ms - signal) / 1000) if signal is not None else 0.0
        return Seen(took_s <= bound_s, f"{took_s:.2f} s to {_said(closed)}")

    return Expectation("signal → admission closed", f"within {_CLOSED_WITHIN_TICKS} ticks of the figures", look)


def _bound_s(evidence: Evidence) -> float:
    return _CLOSED_WITHIN_TICKS * evidence.settings.contract.timings.tick_s
