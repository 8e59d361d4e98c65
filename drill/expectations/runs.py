"""What the recovery's run must have done, by its own journal."""

from __future__ import annotations

from drill.verdict import Evidence, Expectation, Seen
from sluicegate.run_replies import JournalEntry, RunHistory
from sluicegate.run_steps import ROLLBACK_VERB

RECOVERY = ("freeze", "snapshot", "drain", "fix", "recover", "canary", "burn_down", "reopen")


def is_opened_by(*triggers: str) -> Expectation:
    """Compare who asked for the run: webhook, timer or person."""

    def look(evidence: Evidence) -> Seen:
        run = evidence.recovery
        if run is None:
            return Seen(ok=False, text="no run")
        return Seen(run.run.trigger in triggers, f"{run.run.trigger} ({run.run.actor}: {run.run.reason})")

    return Expectation("the run is opened by", " or ".join(triggers), look)


def is_the_only_one() -> Expectation:
    """Count the runs that held the lock: repeated and duplicated alerts are one."""

    def look(evidence: Evidence) -> Seen:
        said = ", ".join(f"{run.run.run_id} {run.run.runbook} {run.run.state}" for run in evidence.recoveries)
        return Seen(len(evidence.recoveries) == 1, f"{len(evidence.recoveries)}: {said}")

    return Expectation("there is one run", "1", look)


def goes_through(*verbs: str, perhaps: str = "", state: str = "succeeded", rollback_reason: str = "") -> Expectation:
    """Compare the order of the steps that were started, that each but the last was done, and how the run ended.

    `perhaps` is a step that may have been started after them.
    """
    steps = " → ".join(verbs) + (f" (→ {perhaps})" if perhaps else "")
    expected = f"{steps}, then {state}" + (f" for {rollback_reason}" if rollback_reason else "")

    def look(evidence: Evidence) -> Seen:
        run = evidence.recovery
        if run is None:
            return Seen(ok=False, text="no run")
        started = _in_order(run, "started")
        done = _in_order(run, "done")
        ended = f"{run.run.state}" + (f" for {run.run.rollback_reason}" if run.run.rollback_reason else "")
        wanted_end = state + (f" for {rollback_reason}" if rollback_reason else "")
        ok = (
            started in (list(verbs), [*verbs, perhaps]) and _begins_with(done, list(verbs[:-1])) and ended == wanted_end
        )
        return Seen(ok, f"{' → '.join(started)}, then {ended}")

    return Expectation("the run goes through its steps", expected, look)


def _in_order(run: RunHistory, phase: str) -> list[str]:
    """Give the steps' verbs with an entry of this phase, each once, in the order of their first."""
    verbs = (entry.verb for entry in run.journal if entry.phase == phase and entry.verb != ROLLBACK_VERB)
    return list(dict.fromkeys(verb for verb in verbs if verb))


def _begins_with(found: list[str], wanted: list[str]) -> bool:
    return found[: len(wanted)] == wanted


def is_resumed() -> Expectation:
    """Look for a second owner in the journal, and for steps that no owner did again."""

    def look(evidence: Evidence) -> Seen:
        run = evidence.recovery
        if run is None:
            return Seen(ok=False, text="no run")
        owners = [entry for entry in run.journal if entry.phase == "claimed"]
        repeated = [verb for verb in RECOVERY if _times(run, verb) > 1]
        where = f", taken over in step {_step_at(run, owners[1])}" if len(owners) > 1 else ""
        again = f"; started again: {', '.join(repeated)}" if repeated else ""
        return Seen(len(owners) == 2 and not repeated, f"{len(owners)} owners{where}{again}")

    return Expectation("the run is resumed", "by a second owner, no step started twice", look)


def _times(run: RunHistory, verb: str) -> int:
    return sum(1 for entry in run.journal if entry.verb == verb and entry.phase == "started")


def _step_at(run: RunHistory, moment: JournalEntry) -> str:
    before = [entry.verb for entry in run.journal if entry.phase == "started" and entry.at_ms <= moment.at_ms]
    return before[-1] if before else "none"


def canaries_failed_for(cause: str) -> Expectation:
    """Look for failed canaries in the journal, and for what failed them."""

    def look(evidence: Evidence) -> Seen:
        run = evidence.recovery
        lines = [entry.text for entry in run.journal if entry.phase == "canary"] if run is not None else []
        failed = [line for line in lines if f"failed: {cause}" in line]
        return Seen(bool(failed), f"{len(failed)} of {len(lines)} canaries")

    return Expectation("canaries fail", f"for being {cause}", look)


def opens_after_the_timer() -> Expectation:
    """Measure from the drain to the run that the controller opened by itself."""

    def look(evidence: Evidence) -> Seen:
        timings = evidence.settings.contract.timings
        drained = next((entry.at_ms for entry in evidence.moves if entry.to_state == "drain"), None)
        run = evidence.recovery
        if drained is None or run is None:
            return Seen(ok=False, text="no drain" if drained is None else "no run")
        took_s = (run.run.started_at_ms - drained) / 1000
        # It is looked at each tick, and a busy machine may miss one.
        latest_s = timings.run_open_after_s + 3 * timings.tick_s
        return Seen(timings.run_open_after_s <= took_s <= latest_s, f"{took_s:.1f} s after the drain")

    return Expectation("drain → run without an alert", "at run_open_after_s, by the controller", look)
