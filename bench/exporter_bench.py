"""Measure the exporter, print the table, and write bench-results/exporter.json: `python -m bench.exporter_bench`.

What is compared is measured in the same run, interleaved, and divided within each round: on a shared machine the
figures themselves say little. A target that is missed is reported as missed, with what dominates.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import redis

from bench.exporter_lab import fill
from bench.exporter_peers import peer_rows
from bench.lab import Lab, affinity_note
from bench.rows import Row
from bench.scraping import Size, looking, others_waiting, scraping, with_globs
from sluicegate import __version__

RESULTS = Path("bench-results/exporter.json")


def measure(lab: Lab, rounds: int, size: Size) -> list[Row]:
    """Give all rows, those with a target first."""
    rows = looking(lab, rounds, size) + scraping(lab, rounds, size) + others_waiting(lab, rounds, size)
    rows += with_globs(lab, size) + peer_rows(lab)
    return sorted(rows, key=lambda row: row.target is None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--short", action="store_true", help="a tenth of the jobs, fewer looks: a look, no verdict")
    asked = parser.parse_args()
    size = Size((1_000, 10_000, 100_000), 100, 40, 1.0) if asked.short else Size()
    with Lab() as lab:
        server = lab.client.info("server")["redis_version"]
        print(f"sluicegate {__version__}, redis-py {redis.__version__}, Redis {server}, {affinity_note()}")
        began = time.monotonic()
        fill(lab, size.depths)
        print(f"queues of {', '.join(map(str, size.depths))} jobs, submitted in {time.monotonic() - began:.0f} s")
        rows = measure(lab, asked.rounds, size)
    for row in rows:
        print(row.line())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n", encoding="utf-8")
    print(f"Python {platform.python_version()}; written to {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
