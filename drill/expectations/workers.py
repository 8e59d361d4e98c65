"""What the workers must have reported."""

from __future__ import annotations

from itertools import pairwise

from drill.needs import WORKERS
from drill.verdict import Evidence, Expectation, Said, Seen

_CALLS = frozenset({"provider_call", "provider_timeout"})
_PARTS = ("expired", "requeued", "unknown", "finished")


def each_reports_its_stop() -> Expectation:
    """Look for every worker's stop_pull report, and add up its parts."""

    def look(evidence: Evidence) -> Seen:
        reports = evidence.timeline.reports
        silent = set(WORKERS) - {report.worker for report in reports}
        wrong = [report.worker for report in reports if not _adds_up(report.text)]
        said = [f"{report.worker}: {report.text}" for report in reports]
        said += [f"silent: {', '.join(sorted(silent))}"] if silent else []
        said += [f"does not add up: {', '.join(wrong)}"] if wrong else []
        return Seen(not silent and not wrong, "; ".join(said))

    return Expectation("workers report their stop", "action=stop_pull of each, and its parts add up", look)


def _adds_up(text: str) -> bool:
    fields = dict(word.partition("=")[::2] for word in text.split())
    try:
        parts = sum(int(fields.get(part, 0)) for part in _PARTS)
        return fields.get("action") == "stop_pull" and int(fields["lease_released"]) == parts
    except (KeyError, ValueError):
        return False


# The log's time is written a moment after the answer, and the next start a moment before its own.
_LOG_SPARE_S = 0.05


def wait_as_told(status: int, full_s: float) -> Expectation:
    """Measure, in the workers' own logs, from each such answer to the job's next call: Retry-After is honoured."""

    def look(evidence: Evidence) -> Seen:
        told_s = round(evidence.profile.real_s(full_s))
        calls: dict[str, list[Said]] = {}
        for one in evidence.said:
            if one.event in _CALLS:
                calls.setdefault(one.job_id, []).append(one)
        waits = [
            later.ts - before.ts
            for of_job in calls.values()
            for before, later in pairwise(of_job)
            if before.fields.get("status") == status
        ]
        shortest = min(waits, default=0.0)
        text = f"{len(waits)} answers {status}, the next call at least {shortest:.2f} s later"
        return Seen(bool(waits) and shortest >= told_s - _LOG_SPARE_S, text)

    return Expectation("workers come back when told", f"no call before Retry-After, {full_s:g} s (full profile)", look)


def late_one_is_refused(name: str) -> Expectation:
    """Look in the late worker's log for the job it was refused before its call, and for no call of that job."""

    def look(evidence: Evidence) -> Seen:
        own = [one for one in evidence.said if one.worker == name]
        refused = [one.job_id for one in own if one.event == "lease_lost" and one.fields.get("before") == "call"]
        called = [one.job_id for one in own if one.event in _CALLS and one.job_id in refused]
        text = f"refused before the call: {', '.join(refused) or 'none'}; called all the same: {len(called)}"
        return Seen(bool(refused) and not called, text)

    return Expectation("the late worker is refused", f"{name} loses its lease before its call, and makes none", look)
