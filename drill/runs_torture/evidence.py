"""Take down what the queues' own records say once a torture is over: one JSON object a line, one file a kind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from drill.runs_torture.parts import Parts
from runbooks.context import Context
from runbooks.library import builtin_names, load_builtin
from runbooks.plan import lines_by_place
from sluicegate.run_replies import RunRecord
from sluicegate.settings import Settings

RUNS, GATE, PLANS, COUNTERS = "runs.jsonl", "gate-log.jsonl", "plans.jsonl", "counters.jsonl"
_MOST_RUNS = 1000
_MOST_MOVES = 10_000


def take_down(parts: Parts, folder: Path) -> None:
    """Write every run with its journal, every move of the gate, every run's lines as planned, and the counters."""
    runs: list[dict[str, Any]] = []
    moves: list[dict[str, Any]] = []
    plans: list[dict[str, Any]] = []
    counters: list[dict[str, Any]] = []
    for queue, settings in parts.settings.items():
        store = parts.connect(queue)
        try:
            for record in store.runs(_MOST_RUNS):
                history = store.run(record.run_id)
                if history is not None:
                    runs.append({"queue": queue, **asdict(history)})
                    plans.append({"queue": queue, "run": record.run_id, "lines": planned(record, settings)})
            moves += [{"queue": queue, **asdict(entry)} for entry in reversed(store.gate_log(_MOST_MOVES))]
            counters.append({"queue": queue, "counters": dict(store.observe().counters)})
        finally:
            store.close()
    for name, rows in ((RUNS, runs), (GATE, moves), (PLANS, plans), (COUNTERS, counters)):
        _write(folder / name, rows)


def planned(record: RunRecord, settings: Settings) -> dict[int, str]:
    """Give what `runbooks plan` shows of a run, by its place in the journal."""
    if record.runbook not in builtin_names():
        return {}
    return lines_by_place(load_builtin(record.runbook), Context(settings, record.run_id))


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
