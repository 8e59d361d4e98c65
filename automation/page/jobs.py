"""Show the unknown and blocked jobs, each with what can be done about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from automation.page.deeds import Deed, Offer, Target
from automation.page.reading import JobLine, Reading

_DEEDS = {
    "unknown": (Deed.RECONCILE, Deed.RETRY, Deed.SUCCEED, Deed.FAIL),
    "blocked": (Deed.RETRY, Deed.SUCCEED, Deed.FAIL),
}


@dataclass(frozen=True, slots=True)
class JobRow:
    """Show one job; what it is about is said with each button, for they look alike."""

    job_id: str
    state: str
    job_class: str
    attempt: str
    worker: str
    since_ms: int
    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class JobsPanel:
    """Show the jobs that have no end that anybody saw; `left_out` are more than the page shows."""

    rows: tuple[JobRow, ...]
    unknown: int
    blocked: int

    @property
    def left_out(self) -> int:
        return max(0, self.unknown + self.blocked - len(self.rows))


def jobs_panel(reading: Reading) -> JobsPanel:
    telemetry = reading.telemetry
    return JobsPanel(tuple(_row(line) for line in reading.jobs), telemetry.unknown, telemetry.blocked)


def _row(line: JobLine) -> JobRow:
    record = line.record
    target = Target(job=line.job_id)
    return JobRow(
        line.job_id,
        line.state,
        record.get("class", ""),
        record.get("attempt", "0"),
        record.get("worker", ""),
        line.since_ms,
        tuple(Offer(deed, target, about=f"job {line.job_id}") for deed in _DEEDS[line.state]),
    )
