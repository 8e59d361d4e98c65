"""Write a drill's report: a page that stands for itself, the audit log, and the figures."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2

from drill.options import DrillOptions
from drill.picture import picture_of
from drill.run import Outcome
from drill.screen import number
from drill.verdict import Evidence
from sluicegate import telemetry as names
from sluicegate.plot import draw
from sluicegate.telemetry import Telemetry

LATEST = "latest"
# What workers were refused; their calls are many, and in the figures.
_REFUSED = frozenset({"lease_lost", "stale_write"})
PAGE, AUDIT, FIGURES, PICTURE = "index.html", "audit.jsonl", "figures.json", "drill.svg"


def write_report(options: DrillOptions, outcome: Outcome) -> Path:
    """Write the report of a drill that saw something into a folder of its own; return the page's path.

    Raises OSError where the folder can't be written.
    """
    evidence = outcome.evidence
    if evidence is None:
        raise ValueError("a drill that saw nothing has no report")
    folder = _new_folder(options.report_dir, outcome.started_at)
    svg = draw(picture_of(evidence, title(outcome)))
    (folder / PICTURE).write_text(svg, encoding="utf-8")
    (folder / AUDIT).write_text("".join(f"{json.dumps(line)}\n" for line in audit(evidence)), encoding="utf-8")
    (folder / FIGURES).write_text(json.dumps(figures(options, outcome, evidence), indent=1), encoding="utf-8")
    (folder / PAGE).write_text(page(options, outcome, evidence, svg), encoding="utf-8")
    _point_latest(options.report_dir, folder)
    return folder / PAGE


def title(outcome: Outcome) -> str:
    """Return one line that says which drill this was and how it ended."""
    return f"{outcome.scenario.name}, profile {outcome.profile.name}: {result(outcome)}"


def result(outcome: Outcome) -> str:
    """Return how the drill ended, in a word or two."""
    if outcome.interrupted is not None:
        return f"interrupted by {outcome.interrupted.number.name}"
    return "passed" if outcome.exit_code == 0 else "failed"


def audit(evidence: Evidence) -> list[dict[str, Any]]:
    """Return gate log, journals and what the drill itself did as records, oldest first."""
    records: list[dict[str, Any]] = [{"log": "gate", **asdict(entry)} for entry in evidence.gate_log]
    for history in evidence.runs:
        records += [
            {"log": "journal", "run": history.run.run_id, "runbook": history.run.runbook, **asdict(entry)}
            for entry in history.journal
        ]
    records += [{"log": "drill", **asdict(mark)} for mark in evidence.timeline.marks]
    records += [
        {"log": "worker", "at_ms": round(one.ts * 1000), **one.fields} for one in evidence.said if one.event in _REFUSED
    ]
    return sorted(records, key=lambda record: int(record["at_ms"]))


def figures(options: DrillOptions, outcome: Outcome, evidence: Evidence) -> dict[str, Any]:
    """Return everything in numbers: the drill, its verdict, its phases, and every sample."""
    return {
        "drill": {
            "scenario": outcome.scenario.name,
            "profile": outcome.profile.name,
            "result": result(outcome),
            "started_at": outcome.started_at.isoformat(),
            **_load(options, evidence),
            "seed": options.seed,
            "parts": list(outcome.parts),
        },
        "verdict": [asdict(row) for row in outcome.verdict.rows] if outcome.verdict is not None else [],
        "phases": [asdict(phase) for phase in evidence.timeline.phases],
        "alerts": [asdict(span) for span in evidence.firing],
        "samples": [sample_figures(sample) for sample in evidence.timeline.samples],
    }


def _load(options: DrillOptions, evidence: Evidence) -> dict[str, Any]:
    """Return what was submitted: a rate and a mix, or the scenario's own queue."""
    if evidence.jobs_of_its_own is not None:
        return {"jobs": asdict(evidence.jobs_of_its_own)}
    return {"rate_per_s": options.rate_per_s, "mix": dict(options.mix)}


def sample_figures(sample: Telemetry) -> dict[str, Any]:
    """Return one sample: the nine fields under their own names, and the counts by state; null is no sample."""
    return {
        "at_ms": sample.at_ms,
        names.QUEUE_AGE_P95_SECONDS: sample.queue_age_p95_seconds,
        names.OLDEST_JOB_AGE_SECONDS: sample.oldest_job_age_seconds,
        names.DEADLINE_SLACK_P10_SECONDS: sample.deadline_slack_p10_seconds,
        names.PROVIDER_5XX_RATE: sample.provider.rate_5xx,
        names.PROVIDER_TIMEOUT_RATE: sample.provider.rate_timeout,
        names.WORKER_INFLIGHT: sample.worker_inflight,
        names.DRAIN_STATE: sample.gate.drain_state,
        names.CANARY_OK_COUNT: sample.gate.canary_ok_count,
        names.ROLLBACK_REASON: sample.gate.rollback_reason,
        "pending": sample.ready,
        "delayed": sample.delayed,
        "running": sample.running,
        "unknown": sample.unknown,
        "blocked": sample.blocked,
        "ramp_percent": sample.gate.ramp_percent,
    }


def page(options: DrillOptions, outcome: Outcome, evidence: Evidence, svg: str) -> str:
    """Render the page; it loads nothing, from here or from elsewhere."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), undefined=jinja2.StrictUndefined, autoescape=True
    )
    environment.filters.update(clock=_clock, number=number)
    start_ms = evidence.timeline.samples[0].at_ms
    return environment.get_template("report.html.j2").render(
        title=title(outcome),
        result=result(outcome),
        options=options,
        outcome=outcome,
        evidence=evidence,
        verdict=outcome.verdict,
        svg=svg,
        start_ms=start_ms,
        machine=f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores",
    )


def _clock(at_ms: int, start_ms: int) -> str:
    """Write an instant as seconds since the first sample."""
    return f"{(at_ms - start_ms) / 1000:.1f} s"


def _new_folder(report_dir: Path, started_at: datetime) -> Path:
    """Make a folder named by the start in UTC; a second drill of the same second gets a number."""
    report_dir.mkdir(parents=True, exist_ok=True)
    name = started_at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    number_of_drill = 1
    while True:
        folder = report_dir / (name if number_of_drill == 1 else f"{name}-{number_of_drill}")
        try:
            folder.mkdir()
        except FileExistsError:
            number_of_drill += 1
        else:
            return folder


def _point_latest(report_dir: Path, folder: Path) -> None:
    """Let `latest` point to the folder, in one step; what is no link of ours is left alone."""
    latest = report_dir / LATEST
    if latest.exists() and not latest.is_symlink():
        return
    link = report_dir / f".{LATEST}-{os.getpid()}"
    link.symlink_to(folder.name)
    link.replace(latest)
