"""Measure the webhook: large bodies, many small ones beside a bare app, and how soon it closes a gate."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from bench.environments import ROOT
from bench.lab import Lab
from bench.processes import die_with_parent, end
from bench.rows import Row, ratios
from sluicegate.producer import Producer
from sluicegate.settings import Settings, load
from sluicegate.store import Store

WEBHOOK = "/webhooks/alertmanager"
CALLERS = 16
_OPENED, _NOBODY_WAITS_S = "run_opened", 86_400
_LARGE_BODY_TARGET_MS, _RATE_TARGET, _CLOSING_TARGET_MS = 50.0, 0.5, 100.0
# As Alertmanager 0.25 posted it: 300 bytes an alert.
_RECORDED: dict[str, Any] = json.loads((ROOT / "tests" / "payloads" / "05-refire.json").read_text(encoding="utf-8"))
_ALERT: dict[str, Any] = _RECORDED["alerts"][0]
_LABELS = {"queue": "default", "runbook": "drain-and-recover"}


@dataclass(frozen=True, slots=True)
class Size:
    """Say how much is measured: posts of the large body, seconds of small ones a round, closings."""

    large: int = 300
    small_s: float = 4.0
    closings: int = 200


def body_of(fingerprints: list[str]) -> bytes:
    """Give a body as Alertmanager posts it, an alert for each fingerprint."""
    alert = _ALERT | {"labels": _ALERT["labels"] | _LABELS}
    return json.dumps(_RECORDED | {"alerts": [alert | {"fingerprint": one} for one in fingerprints]}).encode()


LARGE = body_of([f"{number:016x}" for number in range(1000)])
SMALL = body_of(["%%"])


def measure(rounds: int, size: Size) -> Iterator[Row]:
    """Give the rows, each as soon as it is measured."""
    yield from _large_and_small(rounds, size)
    yield _closing(size)


def _settings(url: str, folder: Path, **contract: Any) -> Settings:  # noqa: ANN401  # of the settings any value
    body = load(None, {}).model_dump(mode="json")
    body |= {"redis_url": url}
    body["automation"] |= {"port": 0, "snapshot_dir": str(folder)}
    timings = body["contract"]["timings"] | contract.pop("timings", {})
    thresholds = body["contract"]["thresholds"] | contract.pop("thresholds", {})
    body["contract"] |= {"timings": timings, "thresholds": thresholds, **contract}
    return Settings.model_validate(body)


@contextmanager
def _opened(lab: Lab, settings: Settings) -> Iterator[Store]:
    lab.client.flushall()
    store, contract = Store.connect(lab.url, timeout_s=10), settings.contract
    store.init_queue(contract.for_redis(), contract.digest(), "bench", "a measurement")
    yield store
    store.close()


@contextmanager
def _process(*words: str) -> Iterator[int]:
    """Run a module that prints its port; gives the port."""
    running = subprocess.Popen(
        [sys.executable, "-m", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        preexec_fn=die_with_parent,  # noqa: PLW1509  # one system call, looked up before the fork
    )
    try:
        assert running.stdout is not None  # noqa: S101  # it was asked for
        yield int(running.stdout.readline())
    finally:
        end(running)


def _posted(port: int, path: str, body: bytes, *, callers: int, seconds: float, most: int) -> list[list[float]]:
    words = [sys.executable, "-m", "bench.posting", str(port), path, str(callers), str(seconds), str(most)]
    done = subprocess.run(words, input=body, capture_output=True, check=True, cwd=ROOT, timeout=600)
    seen: list[list[float]] = json.loads(done.stdout)
    codes = {code for _, _, code in seen}
    if codes != {202}:
        raise SystemExit(f"the service answered {codes} instead of 202")
    return seen


def percentile(values: list[float], share: float) -> float:
    """Give a percentile by nearest rank."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, max(0, -(-len(ranked) * round(share * 100) // 100) - 1))]


def _large_and_small(rounds: int, size: Size) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="webhook-bench-") as name, Lab(append_fsync="always") as lab:
        folder = Path(name)
        settings = _settings(lab.url, folder, timings={"controller_silent_s": _NOBODY_WAITS_S})
        file = folder / "settings.yaml"
        file.write_text(yaml.safe_dump(settings.model_dump(mode="json")), encoding="utf-8")
        with (
            _opened(lab, settings),
            _process("bench.webhook_service", str(file)) as ours,
            _process("bench.bare_hook", lab.url) as bare,
        ):
            _posted(ours, WEBHOOK, LARGE, callers=1, seconds=60, most=5)
            took = [each[1] for each in _posted(ours, WEBHOOK, LARGE, callers=1, seconds=300, most=size.large)]
            half = percentile(took, 0.5)
            note = f"p50 {half:.1f} ms, {len(took)} posts of {len(LARGE) // 1000} kB, appendfsync always"
            yield Row("large body p99", [percentile(took, 0.99)], "ms", _LARGE_BODY_TARGET_MS, False, note)
            lab.client.delete("episodes:open")
            rates: list[float] = []
            beside: list[float] = []
            for _ in range(rounds):
                for rate, port, path in ((rates, ours, WEBHOOK), (beside, bare, "/hook")):
                    seen = _posted(port, path, SMALL, callers=CALLERS, seconds=size.small_s, most=10**9)
                    rate.append(len(seen) / size.small_s)
            said = f"{sorted(rates)[rounds // 2]:.0f} posts/s, the bare app {sorted(beside)[rounds // 2]:.0f}"
            note = f"{said}; {CALLERS} callers, 1-alert bodies, appendfsync always"
            yield Row("posts/s", ratios(rates, beside), "× bare", _RATE_TARGET, True, note)


def _closing(size: Size) -> Row:
    """Open the gate by name, post, and read from the gate's log when the run closed it."""
    instant = dict.fromkeys(("second_drain_s", "run_cooldown_s"), 0.001)
    thresholds = {
        "recovered_age_p95_seconds": 0.01, "reject_age_p95_seconds": 0.02, "drain_age_p95_seconds": 0.03,
    }  # fmt: skip
    took: list[float] = []
    posted: list[float] = []
    with tempfile.TemporaryDirectory(prefix="webhook-bench-") as name, Lab(append_fsync="always") as lab:
        folder = Path(name)
        timings = instant | {"controller_silent_s": _NOBODY_WAITS_S}
        settings = _settings(lab.url, folder, timings=timings, thresholds=thresholds, runs_per_hour=1_000_000)
        file = folder / "settings.yaml"
        file.write_text(yaml.safe_dump(settings.model_dump(mode="json")), encoding="utf-8")
        with (
            _opened(lab, settings) as store,
            _process("bench.webhook_service", str(file)) as port,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=10) as client,
        ):
            Producer(store).submit("refactor-plan", "{}")
            time.sleep(0.1)  # the job is to be older than the thresholds
            for number in range(size.closings):
                body = SMALL.replace(b"%%", b"%016x" % number)
                sent_ms = time.time() * 1000
                client.post(WEBHOOK, content=body).raise_for_status()
                posted.append(time.time() * 1000 - sent_ms)
                took.append(_closed_at_ms(store) - sent_ms)
                if store.order("open_end_run", "bench", "the next one").answer != "moved":
                    raise SystemExit("the gate could not be opened again")
                lab.client.delete("episodes:open")
                time.sleep(0.005)  # past the shortest cooldown
    note = f"p50 {percentile(took, 0.5):.1f} ms; answered after {percentile(posted, 0.99):.1f} ms (p99)"
    return Row("closing p99", [percentile(took, 0.99)], "ms", _CLOSING_TARGET_MS, False, note)


def _closed_at_ms(store: Store) -> int:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        newest = store.gate_log(1)[0]
        if newest.reason == _OPENED:
            return newest.at_ms
        time.sleep(0.001)
    raise SystemExit("the gate was not closed within 5 s")
