"""Measure snapshot and restore beside Redis writing and loading its own file."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.environments import ROOT
from bench.lab import CLASS, Lab
from bench.rows import Bound, Row, ratios
from sluicegate.producer import Producer
from sluicegate.restore import Wish, restore
from sluicegate.snapshot import write_snapshot
from sluicegate.store import Store

_PAYLOAD_BYTES = 216
_WORDS = 400


@dataclass(frozen=True, slots=True)
class Kept:
    """Say how many jobs are kept, and in how many rounds."""

    jobs: int
    rounds: int


def keeping(kept: Kept, say: Callable[[str], None]) -> list[Row]:
    """Measure both on one queue of so many jobs that nobody touches, with its gate as it was opened."""
    with tempfile.TemporaryDirectory(prefix="queue-bench-") as name, Lab() as lab:
        folder = Path(name)
        store = lab.open_queue(max_pending=2 * kept.jobs)
        lab.client.config_set("repl-diskless-sync-delay", 0)
        _fill(Producer(store), kept.jobs)
        say(f"{kept.jobs} jobs are queued")
        took, own, sizes, waits, own_waits = [], [], [], [], []
        for _ in range(kept.rounds):
            with _others(lab.url) as wait_ms:
                took.append(_seconds(lambda: write_snapshot(store, folder / "ours.jsonl.gz")))
            waits.append(wait_ms())
            with _others(lab.url) as wait_ms:
                own.append(_seconds(lambda: _rdb(lab.url, folder / "dump.rdb")))
            own_waits.append(wait_ms())
            sizes.append((folder / "ours.jsonl.gz").stat().st_size / (folder / "dump.rdb").stat().st_size)
        say(f"snapshots: {min(took):.1f}–{max(took):.1f} s, --rdb: {min(own):.1f}–{max(own):.1f} s")
        store.close()
        lab.client.flushall(asynchronous=True)  # at once it may take longer than a client waits
        back, loaded = [], []
        for _ in range(kept.rounds):
            loaded.append(_loading_s(folder))
            back.append(_restored_s(folder / "ours.jsonl.gz", kept.jobs))
        say(f"restores: {min(back):.1f}–{max(back):.1f} s, loading: {min(loaded):.1f}–{max(loaded):.1f} s")
    smaller = Bound("bytes", sizes, "× RDB", 0.25)
    patience = Bound("others wait", waits, "ms", 10.0)
    beside = f"{kept.jobs} jobs in {sorted(took)[len(took) // 2]:.1f} s; with --rdb others wait {max(own_waits):.1f} ms"
    return [
        Row("snapshot", ratios(took, own), "× --rdb", 1.2, False, beside, also=(smaller, patience)),
        Row("restore", ratios(back, loaded), "× load", 1.5, False, f"in {sorted(back)[len(back) // 2]:.1f} s"),
    ]


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _fill(producer: Producer, jobs: int) -> None:
    """Queue jobs whose payloads differ, as prompts do: one text repeated would make any file small."""
    drawn = random.Random(1)
    words = ["".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=drawn.randint(2, 9))) for _ in range(_WORDS)]

    def payload(number: int) -> str:
        text = json.dumps({"number": number, "prompt": " ".join(drawn.choices(words, k=40))})
        return text[: _PAYLOAD_BYTES - 2] + '"}'

    decisions = producer.submit_many(producer.prepare(CLASS, payload(number)) for number in range(jobs))
    if not all(decision.accepted for decision in decisions):
        raise SystemExit("the bench's own queue refused a job")


@contextmanager
def _others(url: str) -> Iterator[Callable[[], float]]:
    """Let another client ask all the time; gives how long its longest wait was, in ms, once the block is left."""
    asking = subprocess.Popen(
        [sys.executable, "-m", "bench.asking", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    said: list[float] = []
    assert asking.stdout is not None  # noqa: S101  # it was asked for
    asking.stdout.readline()
    try:
        yield lambda: said[0]
    finally:
        said.append(float(json.loads(asking.communicate("\n", timeout=10)[0])["longest_ms"]))


def _rdb(url: str, path: Path) -> None:
    program = shutil.which("redis-cli")
    if program is None:
        raise SystemExit("redis-cli is not on the PATH: apt-get install --no-install-recommends redis-tools")
    subprocess.run([program, "-u", url, "--rdb", str(path)], check=True, capture_output=True, timeout=300)


def _loading_s(folder: Path) -> float:
    """Give how long redis-server says it took to load `dump.rdb`."""
    with Lab(dump=folder / "dump.rdb") as lab:
        lab.wait_until_loaded()
        found = re.search(r"DB loaded from disk: ([0-9.]+) seconds", lab.log())
    if found is None:
        raise SystemExit("redis-server does not say how long it took to load its file")
    return float(found.group(1))


def _restored_s(path: Path, jobs: int) -> float:
    with Lab() as lab:
        store = Store.connect(lab.url, timeout_s=10)
        began = time.perf_counter()
        done = restore(store, Wish(path, "bench", "a measurement"))
        took_s = time.perf_counter() - began
        store.close()
    if not done.done or done.jobs != jobs:
        raise SystemExit(f"the restore brought {done.jobs} of {jobs} jobs back: {done.answer} {done.why}")
    return took_s
