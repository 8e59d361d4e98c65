"""Measure the queue, print the table, and write bench-results/queue.json: `python -m bench.queue_bench`.

What is compared is measured in the same rounds, one after the other, and divided within each round: on a shared machine
the figures themselves say little. A target that is missed is reported as missed. A peer that does not run fails the
bench, unless `bench/peers/pins.py` lists it with its error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import redis

from bench.keeping import Kept, keeping
from bench.lab import PAYLOAD, QUEUED_PAYLOAD, Lab
from bench.peer_rows import peer_json, peer_lines, peer_rows
from bench.peers.pins import PINS
from bench.processes import end_on_sigterm
from bench.producing import CALLERS, Size, bare_callers, concurrently, in_batches, lpush, one_at_a_time
from bench.rows import Row
from bench.side_by_side import Measured, Share, side_by_side, unexpected
from sluicegate import __version__

RESULTS = Path("bench-results/queue.json")
# The rows in the order of the table, under names that stay.
ORDER = (
    *("submit_sync", "submit_refused", "submit_repeated", "submit_many", "submit_async", "submit_peers", "redis_cpu"),
    *("end_to_end", "worker_cpu", "pick_up", "bytes", "snapshot", "restore"),
)
_began = time.monotonic()


def say(text: str) -> None:
    """Show that it goes on, and how long it has been."""
    print(f"[{time.monotonic() - _began:6.1f} s] {text}", file=sys.stderr, flush=True)


def measure(lab: Lab, rounds: int, size: Size) -> list[Row]:
    """Measure what needs no peer."""
    rows = one_at_a_time(lab, rounds, size)
    say("submissions one at a time are done")
    rows += in_batches(lab, rounds, size)
    rows += concurrently(lab, rounds, size)
    say("batches and concurrent callers are done")
    return rows


def bare_json(lab: Lab, size: Size) -> dict[str, object]:
    """Give what redis-py alone does with a list: no queue, no acknowledgement, no decision."""
    one_by_one = lpush(lab, size.singles)
    at_once = asyncio.run(bare_callers(lab.url, size.concurrent))
    lab.client.flushall()
    before = int(lab.client.info("memory")["used_memory"])
    pipe = lab.client.pipeline(transaction=False)
    for _ in range(size.singles):
        pipe.lpush("bare", QUEUED_PAYLOAD)
    pipe.execute()
    taken = (int(lab.client.info("memory")["used_memory"]) - before) / size.singles
    figures = {"one at a time (jobs/s)": one_by_one, f"{CALLERS} callers (jobs/s)": at_once, "bytes (B/job)": taken}
    return {"name": "bare:redis-py", "value": None, "target": None, "met": None, "figures": figures}


def versions_json(server: str) -> dict[str, object]:
    versions = {
        "sluicegate": __version__,
        "redis-py": redis.__version__,
        "redis-server": server,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **{pin.package: list(pin.requirements) for pin in PINS.values()},
    }
    return {"name": "versions", "value": None, "target": None, "met": None, "versions": versions}


def write(rows: Sequence[Row], others: Sequence[dict[str, object]]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    body = [row.as_json() for row in rows] + list(others)
    RESULTS.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="interleaved rounds (5; with --short 2)")
    parser.add_argument(
        "--short", action="store_true", help="fewer operations, rounds and kept jobs: a look, no verdict"
    )
    parser.add_argument("--kept-rounds", type=int, default=2, help="rounds of the million jobs that are kept (2)")
    asked = parser.parse_args()
    rounds = asked.rounds or (2 if asked.short else 5)
    size = Size(600, 12, 4000) if asked.short else Size()
    kept = Kept(30_000, asked.kept_rounds) if asked.short else Kept(1_000_000, asked.kept_rounds)
    with Lab() as lab:
        server = lab.client.info("server")["redis_version"]
        rows = measure(lab, rounds, size)
        ours, peers = side_by_side(lab, rounds, Share(0.3 if asked.short else 1.0), say)
        bare = bare_json(lab, size)
    rows += peer_rows(ours, peers)
    found = [peer_json(ours, ""), *(peer_json(peer, PINS[peer.name].package) for peer in peers)]
    others = [*found, bare, versions_json(server)]
    # What has been measured is kept, whatever becomes of the long rest.
    write(rows, others)
    rows += keeping(kept, say)
    rows.sort(key=lambda row: ORDER.index(row.name))
    write(rows, others)
    _show(rows, ours, peers, server, rounds)
    failed = unexpected(peers)
    for name in failed:
        print(f"The peer {name} does not run, so this is no measurement beside all peers.", file=sys.stderr)
    return 1 if failed else 0


def _show(rows: Sequence[Row], ours: Measured, peers: Sequence[Measured], server: str, rounds: int) -> None:
    print(f"sluicegate {__version__}, redis-py {redis.__version__}, Redis {server}, {os.cpu_count()} cores")
    print(f"{rounds} interleaved rounds; median (min–max); {len(PAYLOAD)}-byte payload, results off\n")
    for line in peer_lines(ours, peers):
        print(line)
    print(f"\n{'measure':<16} {'reached':>18} {'':<20} {'target':>8}")
    for row in rows:
        print(row.line())
    missed = [row.name for row in rows if row.met is False]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} targets reached; missed: {', '.join(missed) or 'none'}")
    print(f"Python {platform.python_version()}, {time.monotonic() - _began:.0f} s; written to {RESULTS}")


if __name__ == "__main__":
    end_on_sigterm()
    sys.exit(main())
