"""Gather the evidence of a drill while its parts still run: what became of each job, and what each part recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from drill.children import Children
from drill.controls import FiringSpan
from drill.effects import read_effects
from drill.rig import Rig
from drill.scenarios.scenario import Scenario
from drill.verdict import Evidence, JobEnd, Said
from drill.watcher import Watcher
from sluicegate.store import Store

_BATCH = 100
_TOLD = frozenset({"provider_call", "provider_timeout", "lease_lost", "stale_write"})
_FAILURES = 1000


def gather(rig: Rig, watcher: Watcher, scenario: Scenario) -> Evidence:
    """Take the last look and everything that the verdict needs; raises SluicegateError where a part is silent."""
    topology, timeline = rig.topology, rig.timeline
    look = watcher.look()
    timeline.add(look)
    submissions = rig.load.submissions
    # One that was repeated is one job all the same.
    accepted = list(dict.fromkeys(one.decision.job_id for one in submissions if one.decision.accepted))
    keys = {one.decision.job_id: one.ask.key for one in submissions}
    classes = {one.decision.job_id: one.ask.job_class for one in submissions}
    return Evidence(
        profile=rig.profile,
        settings=topology.settings,
        timeline=timeline,
        gate_log=look.gate_log,
        runs=look.runs,
        submissions=submissions,
        load_errors=rig.load.errors,
        jobs=tuple(
            JobEnd(job_id, keys[job_id], classes[job_id], **end) for job_id, end in _ends(topology.store, accepted)
        ),
        failed_records=_failed_records(topology.store, timeline.samples[0].at_ms, look.at_ms),
        effects=read_effects(topology.effects_log),
        firing=_firing(rig, timeline.samples[0].at_ms),
        targets=topology.prometheus.healthy_targets() if topology.prometheus is not None else {},
        died=topology.children.failed(),
        ends_closed=scenario.ends_closed,
        said=tuple(sorted(_said(topology.children), key=lambda one: one.ts)),
        jobs_of_its_own=scenario.jobs,
    )


def _ends(store: Store, job_ids: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield id, and state, cause, attempt and retries of each job; its state is `gone` where there is no record."""
    for batch in _batches(job_ids):
        records = {row["id"]: row["job"] for row in store.records(batch)["jobs"]}
        for job_id in batch:
            record = records.get(job_id, {})
            yield (
                job_id,
                {
                    "state": record.get("state", "gone"),
                    "cause": record.get("cause", ""),
                    "attempt": int(record.get("attempt", 0)),
                    "retries": int(record.get("retries", 0)),
                },
            )


def _said(children: Children) -> Iterator[Said]:
    """Yield what the workers say of their calls and of what was refused to them; other lines are nobody's concern."""
    for log in sorted(children.log_path("worker").parent.glob("worker-*.log")):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                fields = json.loads(line)
            except ValueError:
                continue  # a killed worker's last line may be cut short
            if isinstance(fields, dict) and fields.get("event") in _TOLD:
                ts = datetime.fromisoformat(fields["timestamp"]).timestamp()
                yield Said(ts, log.stem, fields["event"], fields.get("job_id", ""), fields)


def _batches(job_ids: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(job_ids)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _failed_records(store: Store, from_ms: int, to_ms: int) -> dict[str, str]:
    """Return job id → reason of the records in failed:{date}, over midnight too."""
    records: dict[str, str] = {}
    for date in _dates(from_ms, to_ms):
        offset = 0
        while lines := store.failures(date, offset, _FAILURES):
            offset += len(lines)
            records |= {record["job_id"]: record["reason"] for record in map(json.loads, lines)}
    return records


def _dates(from_ms: int, to_ms: int) -> list[str]:
    first, last = (datetime.fromtimestamp(ms / 1000, UTC).date() for ms in (from_ms, to_ms))
    return [(first + timedelta(days)).isoformat() for days in range((last - first).days + 1)]


def _firing(rig: Rig, from_ms: int) -> tuple[FiringSpan, ...]:
    prometheus = rig.topology.prometheus
    return prometheus.firing_spans(from_ms / 1000) if prometheus is not None else ()
