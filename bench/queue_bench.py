"""Measure the queue, print the table, and write bench-results/queue.json: `python -m bench.queue_bench`.

What is compared is measured in the same rounds, one after the other, and divided within each round: on a shared machine
the figures themselves say little. A target that is missed is reported as missed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

import redis

from bench.lab import Lab, affinity_note
from bench.peers import found
from bench.producing import Size, bytes_a_job, concurrently, in_batches, one_at_a_time
from bench.rows import Row
from bench.working import Work, end_to_end, pick_up
from sluicegate import __version__

RESULTS = Path("bench-results/queue.json")


def measure(lab: Lab, rounds: int, size: Size, work: Work) -> list[Row]:
    rows = one_at_a_time(lab, rounds, size)
    rows += in_batches(lab, rounds, size)
    rows += concurrently(lab, rounds, size)
    rows += end_to_end(lab, rounds, work)
    rows += [pick_up(lab, rounds, work), bytes_a_job(lab, rounds, size)]
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--short", action="store_true", help="a fifth of the operations: a look, no verdict")
    asked = parser.parse_args()
    size = Size(600, 12, 4000, 2000) if asked.short else Size()
    work = Work(1000, 20) if asked.short else Work()
    with Lab() as lab:
        server = lab.client.info("server")["redis_version"]
        print(f"sluicegate {__version__}, redis-py {redis.__version__}, Redis {server}, {affinity_note()}")
        rows = measure(lab, asked.rounds, size, work)
    peers = list(found())
    for peer in peers:
        rows.append(Row(f"peer:{peer.module}", [], "", None, True, peer.error or "not measured yet"))
    if not peers:
        print("No peer is in bench/peers yet: the rows that need one have no target.")
    for row in rows:
        print(row.line())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n", encoding="utf-8")
    print(f"Python {platform.python_version()}; written to {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
