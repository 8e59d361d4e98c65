"""Measure what one look at a queue costs: whoever looks, Redis, and the others who wait for it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from bench.exporter_lab import (
    Missing,
    Scraper,
    Target,
    list_of,
    own_exporter,
    queue_of,
    redis_exporter,
    scraped,
)
from bench.lab import Lab
from bench.rows import Row, ratios
from sluicegate.store import Store

_PIPELINE = 1000
_WARM_UP = 50
_BUSY_BATCHES, _BUSY_LOOKS = 40, 5


@dataclass(frozen=True, slots=True)
class Size:
    """Say how much is measured: depths of the queues, looks and scrapes a round, seconds of pings a round."""

    depths: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    looks: int = 400
    scrapes: int = 150
    ping_s: float = 3.0
    globs: int = 3

    @property
    def least(self) -> int:
        return self.depths[0]

    @property
    def most(self) -> int:
        return self.depths[-1]


def _ms(look: Callable[[], object], times: int) -> float:
    """Give the median milliseconds of one look."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        look()
        took.append(time.perf_counter() - began)
    return median(took) * 1000


def looking(lab: Lab, rounds: int, size: Size) -> list[Row]:
    """Measure observe at every depth, interleaved, Redis' own count of it, and the naive read at the greatest depth."""
    stores = {depth: Store.connect(lab.url, queue_of(depth), read_only=True, timeout_s=60) for depth in size.depths}
    took: dict[int, list[float]] = {depth: [] for depth in size.depths}
    busy: dict[int, list[float]] = {depth: [] for depth in size.depths}
    for store in stores.values():
        _ms(store.observe, _WARM_UP)
    for _ in range(rounds):
        seen = _looks_in_turn(stores, size.looks)
        for depth, store in stores.items():
            took[depth].append(median(seen[depth]) * 1000)
            busy[depth].append(median(_busy_ms(lab, store) for _ in range(_BUSY_BATCHES)))
    scans = [_scan_ms(lab, size.most) for _ in range(2 if size.most < 1_000_000 else 1)]
    scanned = median(scans)
    rows = [
        Row("observe_flat", ratios(took[size.most], took[size.least]), "×", 1.3, False, f"{size.most} : {size.least}"),
        Row(
            "redis_busy",
            busy[size.most],
            "ms",
            0.1,
            False,
            f"Redis' own count; {_asked(lab, stores[size.most]):.0f} commands inside: ranks of age and slack by class "
            "and in all are most of it",
        ),
        Row(
            "observe_vs_scan",
            [one / scanned for one in took[size.most]],
            "×",
            1 / 20_000,
            False,
            f"LRANGE and a hash read a job: {scanned:.0f} ms at {size.most}",
        ),
        *(Row(f"observe_ms:{depth}", took[depth], "ms", None, False, "round trip included") for depth in size.depths),
        *(Row(f"redis_busy_ms:{depth}", busy[depth], "ms", None, False, "") for depth in size.depths),
    ]
    for store in stores.values():
        store.close()
    return rows


def _looks_in_turn(stores: Mapping[int, Store], times: int) -> dict[int, list[float]]:
    """Look at every queue in turn, again and again: whatever else the machine does meets all of them alike."""
    seen: dict[int, list[float]] = {depth: [] for depth in stores}
    for _ in range(times):
        for depth, store in stores.items():
            began = time.perf_counter()
            store.observe()
            seen[depth].append(time.perf_counter() - began)
    return seen


def _counted(lab: Lab, store: Store) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Give what Redis itself counts of a few observes: of their calls, and of the commands inside them."""
    lab.client.config_resetstat()
    for _ in range(_BUSY_LOOKS):
        store.observe()
    spent = lab.client.info("commandstats")
    calls = [
        spent.pop(f"cmdstat_{name}") for name in ("fcall_ro", "evalsha_ro", "eval_ro") if f"cmdstat_{name}" in spent
    ]
    return calls, [row for name, row in spent.items() if not name.startswith(("cmdstat_info", "cmdstat_config"))]


def _busy_ms(lab: Lab, store: Store) -> float:
    """Give Redis' own time for one observe, over a few: its clock runs on where it has to wait for a core."""
    return sum(row["usec"] for row in _counted(lab, store)[0]) / _BUSY_LOOKS / 1000


def _asked(lab: Lab, store: Store) -> float:
    return sum(row["calls"] for row in _counted(lab, store)[1]) / _BUSY_LOOKS


def _scan_ms(lab: Lab, depth: int) -> float:
    """Read the list and every job's times, as one does without an index, a thousand to a pipeline."""
    began = time.perf_counter()
    ids = lab.client.lrange(list_of(depth), 0, -1)
    seen = 0
    for start in range(0, len(ids), _PIPELINE):
        pipe = lab.client.pipeline(transaction=False)
        for job_id in ids[start : start + _PIPELINE]:
            pipe.hmget(f"{{{queue_of(depth)}}}:job:{job_id}", "admitted_at", "deadline")
        seen += sum(row[0] is not None for row in pipe.execute())
    if seen != depth:
        raise SystemExit(f"the naive read found {seen} of {depth} jobs")
    return (time.perf_counter() - began) * 1000


@dataclass(frozen=True, slots=True)
class _Cost:
    """Hold the median ms, the CPU ms of the exporter's process and the bytes of one scrape."""

    ms: float
    cpu_ms: float
    size: int


def _cost(scraper: Scraper, target: Target, times: int) -> _Cost:
    before = target.cpu_seconds()
    answers = [scraper.scrape() for _ in range(times)]
    cpu_ms = (target.cpu_seconds() - before) / times * 1000
    return _Cost(median(took for took, _ in answers) * 1000, cpu_ms, answers[-1][1])


def scraping(lab: Lab, rounds: int, size: Size) -> list[Row]:
    """Measure whole scrapes of the deepest queue beside redis_exporter without keys, in the same rounds."""
    ours, theirs, missing = [], [], ""
    with own_exporter(lab, size.most) as mine, scraped(mine) as my_scraper:
        _cost(my_scraper, mine, _WARM_UP)
        try:
            with redis_exporter(lab) as other, scraped(other) as other_scraper:
                _cost(other_scraper, other, _WARM_UP)
                for _ in range(rounds):
                    ours.append(_cost(my_scraper, mine, size.scrapes))
                    theirs.append(_cost(other_scraper, other, size.scrapes))
        except Missing as error:
            missing = f"prometheus-redis-exporter is missing: {error}"
            ours = [_cost(my_scraper, mine, size.scrapes) for _ in range(rounds)]
    http = ratios([one.ms for one in ours], [one.ms for one in theirs]) if theirs else []
    cpu = ratios([one.cpu_ms for one in ours], [one.cpu_ms for one in theirs]) if theirs else []
    note = missing or "redis_exporter without keys; Python: HTTP, the read, 320 samples of the queue, compression"
    rows = [
        Row("metrics_http", http, "×", 0.5, False, note),
        Row("metrics_cpu", cpu, "×", 0.3, False, note),
        *_absolute("sluicegate", ours),
    ]
    return rows + (
        _absolute("redis_exporter", theirs) if theirs else [Row("redis_exporter", [], "", None, False, note)]
    )


def _absolute(name: str, costs: Sequence[_Cost]) -> list[Row]:
    return [
        Row(f"scrape_ms:{name}", [cost.ms for cost in costs], "ms", None, False, f"{costs[-1].size} bytes, compressed"),
        Row(
            f"scrape_cpu_ms:{name}", [cost.cpu_ms for cost in costs], "ms", None, False, "CPU of the exporter's process"
        ),
    ]


def with_globs(lab: Lab, size: Size) -> list[Row]:
    """Measure redis_exporter as people set it up to see their queues: with a glob over their keys."""
    name = "scrape_ms:redis_exporter_with_glob"
    try:
        with redis_exporter(lab, f"-check-keys={{{queue_of(size.least)}}}:queue:*") as other, scraped(other) as scraper:
            took = [scraper.scrape()[0] * 1000 for _ in range(size.globs)]
    except Missing as error:
        return [Row(name, [], "ms", None, False, f"prometheus-redis-exporter is missing: {error}")]
    return [Row(name, took, "ms", None, False, "it walks over every key of the server")]


class _Prober:
    """Talk to a process that pings all the time (see waiting.py)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def begin(self, seconds: float) -> None:
        assert self._process.stdin is not None  # noqa: S101  # it was asked for
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()

    def waits(self) -> list[tuple[float, float]]:
        assert self._process.stdout is not None  # noqa: S101  # it was asked for
        return [(float(at), float(ms)) for at, ms in json.loads(self._process.stdout.readline())]


@contextmanager
def _prober(lab: Lab) -> Iterator[_Prober]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.waiting", lab.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None  # noqa: S101  # it was asked for
        if process.stdout.readline() != "ready\n":
            raise SystemExit("the bench's other client did not start")
        yield _Prober(process)
    finally:
        process.terminate()
        process.wait(10)


def others_waiting(lab: Lab, rounds: int, size: Size) -> list[Row]:
    """Measure how long another client waits while a scrape of the deepest queue is under way, against no scrape.

    The p99 of those pings that overlap a scrape, minus the p99 of as long a time without one.
    """
    added, quiet = [], []
    with own_exporter(lab, size.most) as mine, scraped(mine) as scraper, _prober(lab) as prober:
        _cost(scraper, mine, _WARM_UP)
        for _ in range(rounds):
            prober.begin(size.ping_s)
            alone = [ms for _, ms in prober.waits()]
            prober.begin(size.ping_s)
            spans = _scrape_until(scraper, time.monotonic() + size.ping_s)
            during = _overlapping(prober.waits(), spans)
            added.append(_p99(during) - _p99(alone))
            quiet.append(_p99(alone))
    scanned = _waits_beside(lab, size)
    return [
        Row("others_wait", added, "ms", 1.0, False, f"p99 without a scrape: {median(quiet):.2f} ms"),
        Row("others_wait_beside_lrange", [scanned], "ms", None, False, "the longest wait while the list alone is read"),
    ]


def _scrape_until(scraper: Scraper, end: float) -> list[tuple[float, float]]:
    spans = []
    while time.monotonic() < end:
        began = time.monotonic()
        scraper.scrape()
        spans.append((began, time.monotonic()))
        time.sleep(0.01)
    return spans


def _overlapping(waits: Sequence[tuple[float, float]], spans: Sequence[tuple[float, float]]) -> list[float]:
    return [ms for at, ms in waits if any(began <= at + ms / 1000 and at <= ended for began, ended in spans)]


def _waits_beside(lab: Lab, size: Size) -> float:
    with _prober(lab) as prober:
        prober.begin(2.0)
        time.sleep(0.3)
        lab.client.lrange(list_of(size.most), 0, -1)
        return max(ms for _, ms in prober.waits())


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]
