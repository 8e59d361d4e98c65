"""What must have become of the jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from drill.effects import duplicate_keys
from drill.rig import KILLED, RECONCILED
from drill.verdict import Evidence, Expectation, Seen
from sluicegate.job import JobState

_OPEN = frozenset({JobState.UNKNOWN, JobState.BLOCKED})
_KEPT = frozenset({JobState.READY, JobState.DELAYED})
_NAMED = 5


def _names(items: Iterable[str]) -> str:
    """List a few and count the rest."""
    listed = list(items)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def every_job_has_an_end() -> Expectation:
    """Look for the end of every accepted job; what waits for a person is named, what a closed gate keeps is counted."""

    def look(evidence: Evidence) -> Seen:
        jobs = evidence.jobs
        kept = [job for job in jobs if job.state in _KEPT] if evidence.ends_closed else []
        open_jobs = [job for job in jobs if job.state in _OPEN]
        lost = [job for job in jobs if not job.ended and job not in kept and job not in open_jobs]
        counts = Counter(job.state for job in jobs if job.ended)
        said = [f"{len(jobs)} accepted", *(f"{count} {state}" for state, count in counts.most_common())]
        said += [f"{len(kept)} kept behind the closed gate"] if kept else []
        said += [f"open: {_names(f'{job.job_id} {job.state} ({job.cause})' for job in open_jobs)}"] if open_jobs else []
        said += [f"without an end: {_names(f'{job.job_id} {job.state}' for job in lost)}"] if lost else []
        return Seen(bool(jobs) and not lost, "; ".join(said))

    return Expectation("every job has an end", "each accepted job ends, or is open and named", look)


def every_expired_job_is_recorded() -> Expectation:
    """Look for the record of every expired job in failed:{date}."""

    def look(evidence: Evidence) -> Seen:
        expired = [job for job in evidence.jobs if job.state == JobState.EXPIRED]
        missing = [job.job_id for job in expired if evidence.failed_records.get(job.job_id) != "expired"]
        text = f"{len(expired)} expired, {len(expired) - len(missing)} recorded"
        return Seen(not missing, text + (f"; missing: {_names(missing)}" if missing else ""))

    return Expectation("expired jobs are recorded", "each has its line in failed:{date}", look)


def nothing_is_done_twice() -> Expectation:
    """Count the provider's own effects by idempotency key."""

    def look(evidence: Evidence) -> Seen:
        doubled = duplicate_keys(evidence.effects)
        keys = len({effect.key for effect in evidence.effects})
        text = f"{len(evidence.effects)} effects under {keys} keys"
        return Seen(bool(evidence.effects) and not doubled, text + (f"; twice: {_names(doubled)}" if doubled else ""))

    return Expectation("nothing is done twice", "at most one effect a key by the provider's own log", look)


def succeeded_jobs_have_their_effect() -> Expectation:
    """Look for the provider's effect behind every job that counts as succeeded."""

    def look(evidence: Evidence) -> Seen:
        done = {effect.key for effect in evidence.effects}
        succeeded = [job for job in evidence.jobs if job.state == JobState.SUCCEEDED]
        empty = [job.job_id for job in succeeded if job.key not in done]
        text = f"{len(succeeded) - len(empty)} of {len(succeeded)} do"
        return Seen(bool(succeeded) and not empty, text + (f"; without: {_names(empty)}" if empty else ""))

    return Expectation("succeeded means done", "each succeeded job has its effect in the provider's log", look)


def none_is_unknown() -> Expectation:
    """Count unknown jobs over the whole drill, for where no worker is killed."""

    def look(evidence: Evidence) -> Seen:
        most = max((sample.unknown for sample in evidence.timeline.samples), default=0)
        left = [job.job_id for job in evidence.jobs if job.state == JobState.UNKNOWN]
        return Seen(most == 0 and not left, f"at most {most} at a time, {len(left)} in the end")

    return Expectation("no job is unknown", "0, for no worker is killed", look)


def few_are_unknown_in_time(since: str = KILLED) -> Expectation:
    """Compare the jobs of the worker that was killed, or stopped: at most 2 unknown, found within the lease + 0.5 s."""

    def look(evidence: Evidence) -> Seen:
        lease_s = evidence.settings.contract.lease_ms / 1000
        killed = evidence.timeline.marked(since)
        found = [sample for sample in evidence.timeline.samples if sample.unknown > 0]
        if killed is None or not found:
            return Seen(ok=False, text="no unknown job was seen" if killed else f"no worker was {since}")
        most = max(sample.unknown for sample in found)
        took_s = (next(sample.at_ms for sample in found if sample.unknown == most) - killed) / 1000
        # What is seen is a sample: it may be as old as the pause between two of them.
        bound_s = lease_s + 0.5 + evidence.profile.sample_every_s
        return Seen(most <= 2 and took_s <= bound_s, f"{most} unknown {took_s:.1f} s after it was {since}")

    return Expectation("lost jobs are found", "at most 2 unknown within lease + 0.5 s", look)


def unknown_ones_were_settled() -> Expectation:
    """Look for the end of the jobs that were unknown: settled by the provider's own log."""

    def look(evidence: Evidence) -> Seen:
        settled = [mark.text for mark in evidence.timeline.marks if mark.kind == RECONCILED]
        left = [job for job in evidence.jobs if job.state == JobState.UNKNOWN]
        return Seen(bool(settled) and not left, "; ".join([*settled, f"{len(left)} left"]))

    return Expectation("unknown jobs are settled", "by the provider's log under their keys; 0 left", look)


def each_succeeds(count: int) -> Expectation:
    """Count the jobs that succeeded, where every one has the time to."""

    def look(evidence: Evidence) -> Seen:
        succeeded = sum(job.state == JobState.SUCCEEDED for job in evidence.jobs)
        return Seen(succeeded == len(evidence.jobs) == count, f"{succeeded} of {len(evidence.jobs)}")

    return Expectation("every job succeeds", f"all {count}", look)


def settled_ones_are_not_repeated() -> Expectation:
    """Look at the jobs that were settled by the provider's log: it holds their effect, so none was started again."""

    def look(evidence: Evidence) -> Seen:
        settled = [job for job in evidence.jobs if job.cause == "reconciled"]
        again = [job.job_id for job in settled if job.attempt != 1 or job.state != JobState.SUCCEEDED]
        text = f"{len(settled)} settled as they were, {len(again)} started again"
        return Seen(bool(settled) and not again, text + (f": {_names(again)}" if again else ""))

    return Expectation("what was done is not done again", "settled as succeeded after their first start", look)


def ledger_allows_the_retry() -> Expectation:
    """Look at what the ledger said of the unknown job, and that exactly the judged ones were started twice."""

    def look(evidence: Evidence) -> Seen:
        judged = [mark.text for mark in evidence.timeline.marks if mark.kind == RECONCILED]
        sound = [text for text in judged if "no intent" in text and "now ready" in text]
        twice = [job.job_id for job in evidence.jobs if job.attempt == 2]
        others = [job.job_id for job in evidence.jobs if job.attempt > 2]
        ok = bool(judged) and len(sound) == len(judged) == len(twice) and not others
        return Seen(ok, f"{'; '.join(judged) or 'nothing was judged'}; {len(twice)} started twice")

    return Expectation("no intent, safe to retry", "by the ledger; started once more, by another worker", look)


def none_is_blocked() -> Expectation:
    """Count blocked jobs over the whole drill."""

    def look(evidence: Evidence) -> Seen:
        most = max((sample.blocked for sample in evidence.timeline.samples), default=0)
        left = [job.job_id for job in evidence.jobs if job.state == JobState.BLOCKED]
        return Seen(most == 0 and not left, f"at most {most} at a time, {len(left)} in the end")

    return Expectation("no job is blocked", "0: what was not executed uses no retry", look)


def use_no_retry() -> Expectation:
    """Compare starts with retries: each job was started more than once, and none used a retry for it."""

    def look(evidence: Evidence) -> Seen:
        retried = [job.job_id for job in evidence.jobs if job.retries]
        once = [job.job_id for job in evidence.jobs if job.attempt < 2]
        starts = [job.attempt for job in evidence.jobs]
        said = f"{min(starts, default=0)} to {max(starts, default=0)} starts a job, {len(retried)} jobs used a retry"
        return Seen(bool(starts) and not retried and not once, said)

    return Expectation("429 uses no retry", "each job started several times, retries_used 0", look)


def done_once() -> tuple[Expectation, ...]:
    """Give what must hold of the jobs in every scenario, whatever became unknown meanwhile."""
    return (
        every_job_has_an_end(),
        every_expired_job_is_recorded(),
        nothing_is_done_twice(),
        succeeded_jobs_have_their_effect(),
    )


def common(*, killed_worker: bool = False) -> tuple[Expectation, ...]:
    """Give what must hold of the jobs in every scenario."""
    unknown = (few_are_unknown_in_time(), unknown_ones_were_settled()) if killed_worker else (none_is_unknown(),)
    return (*done_once(), *unknown)
