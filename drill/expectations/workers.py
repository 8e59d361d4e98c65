"""What the workers must have reported."""

from __future__ import annotations

from drill.topology import WORKERS
from drill.verdict import Evidence, Expectation, Seen

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
