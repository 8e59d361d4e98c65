"""What the producers must have been told."""

from __future__ import annotations

from collections import Counter

from drill.rig import RESUMED, SUSPENDED
from drill.verdict import Evidence, Expectation, Seen


def every_submission_is_answered() -> Expectation:
    """Count the submissions that got no decision at all."""

    def look(evidence: Evidence) -> Seen:
        answers = Counter(one.decision.reason or "accepted" for one in evidence.submissions)
        said = [", ".join(f"{count} {answer}" for answer, count in answers.most_common())]
        said += [f"unanswered: {evidence.load_errors[0]} ({len(evidence.load_errors)})"] if evidence.load_errors else []
        return Seen(bool(evidence.submissions) and not evidence.load_errors, "; ".join(said))

    return Expectation("every submission is answered", "accepted, or refused with a reason", look)


def goes_on_after_reopening(full_s: float) -> Expectation:
    """Measure how long jobs were accepted after the run had ended."""

    def look(evidence: Evidence) -> Seen:
        run = evidence.recovery
        if run is None or not run.run.ended_at_ms:
            return Seen(ok=False, text="no run has ended")
        after = [one for one in evidence.submissions if one.at_ms > run.run.ended_at_ms]
        accepted = [one for one in after if one.decision.accepted]
        lasted_s = (after[-1].at_ms - run.run.ended_at_ms) / 1000 if after else 0.0
        ok = lasted_s >= evidence.profile.real_s(full_s) and len(accepted) == len(after)
        return Seen(ok, f"{lasted_s:.1f} s, {len(accepted)} of {len(after)} accepted")

    return Expectation("load goes on after reopening", f"≥ {full_s:g} s (full profile), all accepted", look)


def silence_is_refused_in_time() -> Expectation:
    """Measure from the controller's suspension to the first refusal, and from its return to the next acceptance."""

    def look(evidence: Evidence) -> Seen:
        timings = evidence.settings.contract.timings
        suspended, resumed = evidence.timeline.marked(SUSPENDED), evidence.timeline.marked(RESUMED)
        refused = [one.at_ms for one in evidence.submissions if one.decision.reason == "controller_silent"]
        if suspended is None or resumed is None or not refused:
            return Seen(ok=False, text="no job was refused with controller_silent")
        took_s = (refused[0] - suspended) / 1000
        back = [one.at_ms for one in evidence.submissions if one.decision.accepted and one.at_ms > resumed]
        returned = f", accepted again {(back[0] - resumed) / 1000:.1f} s after its return" if back else ", never again"
        # The last sign of life may be a tick old when the controller is stopped, so it can only be earlier, not later;
        # half a second is for the pace of the load.
        bound_s = timings.controller_silent_s + timings.tick_s
        return Seen(bool(back) and took_s <= bound_s, f"refused {took_s:.1f} s after the stop{returned}")

    return Expectation(
        "a silent controller closes admission", "controller_silent within controller_silent_s + a tick", look
    )
