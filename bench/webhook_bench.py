"""Measure the webhook, print the table, and write bench-results/webhook.json: `python -m bench.webhook_bench`.

What is compared is measured in the same rounds, one after the other, and divided within each round. A target that is
missed is reported as missed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import fastapi
import redis
import uvicorn

from bench.hooking import Size, measure
from bench.lab import affinity_note
from bench.processes import end_on_sigterm
from sluicegate import __version__

RESULTS = Path("bench-results/webhook.json")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds of small bodies (default 5)")
    parser.add_argument("--short", action="store_true", help="fewer posts and two short rounds: a look, no verdict")
    asked = parser.parse_args()
    size, rounds = (Size(40, 1.5, 30), 2) if asked.short else (Size(), asked.rounds)
    began, rows = time.monotonic(), []
    versions = f"FastAPI {fastapi.__version__}, uvicorn {uvicorn.__version__}, redis-py {redis.__version__}"
    print(f"sluicegate {__version__}, {versions}, {affinity_note()}\n")
    for row in measure(rounds, size):
        rows.append(row)
        print(row.line(), flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n", encoding="utf-8")
    missed = [row.name for row in rows if row.met is False]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} targets reached; missed: {', '.join(missed) or 'none'}")
    print(f"Python {platform.python_version()}, {time.monotonic() - began:.0f} s; written to {RESULTS}")
    return 0


if __name__ == "__main__":
    end_on_sigterm()
    sys.exit(main())
