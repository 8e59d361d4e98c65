"""What the answers must have been where a producer asks more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from drill.load import Submission
from drill.verdict import Evidence, Expectation, Seen


def _by_key(evidence: Evidence) -> dict[str, list[Submission]]:
    """Give the submissions of each key, oldest first."""
    found: dict[str, list[Submission]] = {}
    for one in evidence.submissions:
        found.setdefault(one.ask.key, []).append(one)
    return found


def some_are_refused(accepted: int, reason: str) -> Expectation:
    """Look at the first answer of each key: so many accepted, in order, and every later one refused."""

    def look(evidence: Evidence) -> Seen:
        first = [asked[0].decision for asked in _by_key(evidence).values()]
        wanted = ["accepted"] * accepted + [reason] * (len(first) - accepted)
        answers = ["accepted" if decision.accepted else decision.reason for decision in first]
        said = ", ".join(f"{count} {answer}" for answer, count in Counter(answers).items())
        return Seen(len(first) > accepted and answers == wanted, f"{said}, in this order")

    return Expectation("admission pauses", f"{accepted} accepted, then every job refused with {reason}", look)


def _too_early(evidence: Evidence) -> Iterator[tuple[Submission, Submission]]:
    """Give each repeat that came before its refusal was due, after that refusal."""
    for asked in _by_key(evidence).values():
        for refused, again in pairwise(asked):
            wait_s = refused.decision.retry_after_s
            if not refused.decision.accepted and wait_s is not None and again.at_ms < refused.at_ms + 1000 * wait_s:
                yield refused, again


def refusals_are_stored(count: int) -> Expectation:
    """Look at the repeats that came too early: the same refusal, from the record, though the gate is open by then."""

    def look(evidence: Evidence) -> Seen:
        early = list(_too_early(evidence))
        same = [
            again
            for refused, again in early
            if again.decision.replayed
            and (again.decision.job_id, again.decision.reason) == (refused.decision.job_id, refused.decision.reason)
        ]
        return Seen(len(early) == len(same) == count, f"{len(same)} of {len(early)} got the stored refusal")

    return Expectation("refusals are stored", f"{count} repeats that come too early get the same answer", look)


def ids_stay_the_same() -> Expectation:
    """Compare the ids that each key was answered with, and that each key ended accepted."""

    def look(evidence: Evidence) -> Seen:
        asked = _by_key(evidence)
        ids = {key: {one.decision.job_id for one in of_key} for key, of_key in asked.items()}
        several = [key for key, of_key in ids.items() if len(of_key) != 1]
        open_ones = [key for key, of_key in asked.items() if not of_key[-1].decision.accepted]
        shared = len(set().union(*ids.values())) != len(ids)
        said = (
            f"{len(ids)} keys, {len(set().union(*ids.values()))} ids, {len(ids) - len(open_ones)} accepted in the end"
        )
        said += f"; with several ids: {', '.join(several[:3])}" if several else ""
        return Seen(bool(ids) and not several and not open_ones and not shared, said)

    return Expectation("one key, one job", "each key has one id from its first answer to its last, accepted", look)


def repeats_are_replayed(times: int) -> Expectation:
    """Count the deliveries of each key: the first decides, every further one is answered from the record."""

    def look(evidence: Evidence) -> Seen:
        asked = _by_key(evidence)
        wanted = [False] + [True] * (times - 1)
        right = [key for key, of_key in asked.items() if [one.decision.replayed for one in of_key] == wanted]
        replayed = sum(one.decision.replayed for one in evidence.submissions)
        text = f"{len(right)} of {len(asked)} keys so, {replayed} answers replayed"
        return Seen(bool(asked) and len(right) == len(asked), text)

    return Expectation("repeats are replayed", f"each key comes {times} times and is decided once", look)


def survive_the_restart(count: int) -> Expectation:
    """Compare what was stored before the server was killed with what it came back with, record by record."""

    def look(evidence: Evidence) -> Seen:
        stored = evidence.timeline.stored
        if len(stored) != 2:
            return Seen(ok=False, text=f"what is stored was read {len(stored)} times, not before and after")
        before, after = stored
        changed = [job_id for job_id, record in before.records.items() if after.records.get(job_id) != record]
        added = set(after.records) - set(before.records)
        said = f"{len(before.pending)} pending before, {len(after.pending)} after, {len(changed)} records changed"
        ok = before.pending == after.pending and len(after.pending) == len(after.records) == count
        return Seen(ok and not changed and not added, said)

    return Expectation("a restart loses nothing", f"the same {count} pending, every record unchanged", look)
