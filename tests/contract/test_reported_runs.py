"""What users of other runbook tools reported of gates, played with a real Prometheus whose exporter a test rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from drill.children import Children
from drill.monitoring import Prometheus, PrometheusOptions
from runbooks.prometheus import ask
from sluicegate.run_replies import JournalEntry
from tests.automation_parts import ON_BOTH, quick, until
from tests.contract.test_automation_verbs import HOLD, Mine, book
from tests.small_server import Handler
from tests.small_server import served as serving
from tests.webhooks import post, recorded, served

pytestmark = ON_BOTH
# Longer than a busy machine takes to scrape and to ask.
HELD_S = 8.0


class Exporter:
    """Serve one figure to a real Prometheus: what it is now, or nothing where there is none."""

    def __init__(self, children: Children, address: str) -> None:
        self.value: str | None = None
        self._prometheus = Prometheus(
            children, PrometheusOptions((), {"own": (address,)}, scrape_interval_s=0.5, evaluation_interval_s=1)
        )

    @property
    def url(self) -> str:
        return self._prometheus.url

    def start(self) -> None:
        self._prometheus.start()

    async def says(self, value: str) -> None:
        """Change the figure, and wait until the Prometheus has it."""
        self.value = value

        def scraped() -> bool:
            sample = ask(self.url, "canary_success_ratio")
            return sample.why == value or (sample.value is not None and sample.value == float(value))

        await until(scraped, f"a scrape of {value}", 30)


@contextmanager
def exporting() -> Iterator[Exporter]:
    told: list[Exporter] = []

    class Metrics(Handler):
        def respond(self) -> None:
            value = told[0].value if told else None
            if value is None:
                self.answer(503)
            else:
                self.answer(200, f"canary_success_ratio {value}\n".encode(), "text/plain; version=0.0.4")

    with serving(Metrics) as address, Children() as children:
        exporter = Exporter(children, address)
        told.append(exporter)
        exporter.start()
        yield exporter


@pytest.fixture(scope="module")
def exporter() -> Iterator[Exporter]:
    """Return an exporter that a real Prometheus scrapes twice a second."""
    with exporting() as made:
        yield made


def waits_for_canaries(**more: Any) -> Any:
    gate = {"pass_if": [{"promql": "canary_success_ratio", "holds": ">= 0.95"}], "no_data": "hold", "for": f"{HELD_S}s"}
    return book({"wait_for": gate | HOLD | more})


def standings(parts: Mine, run: str) -> list[JournalEntry]:
    """Give the looks at which the gate said something new, in their order."""
    looks: list[JournalEntry] = []
    for entry in parts.journal(run, "progress", "wait_for"):
        if not looks or _word(looks[-1]) != _word(entry):
            looks.append(entry)
    return looks


def _word(entry: JournalEntry) -> str:
    return entry.text.partition(":")[0]


def paged(parts: Mine, run: str) -> list[str]:
    return [entry.text for entry in parts.journal(run, "paged")]


async def until_standing(parts: Mine, run: str, *words: str) -> None:
    await until(lambda: [_word(one) for one in standings(parts, run)] == list(words), f"the looks {words}", 30)


def held_s(parts: Mine, run: str) -> float:
    """Give how long the gate had held when the step was done, from the look and not from the writing down of it."""
    (done,) = parts.journal(run, "done", "wait_for")
    since_ms: int = json.loads(standings(parts, run)[-1].detail)["at_ms"]
    return (done.at_ms - since_ms) / 1000


def test_an_exporter_that_dies_while_draining_passes_nothing_and_its_resolved_alert_acts_on_nothing(
    redis_url: str, tmp_path: Path, exporter: Exporter
) -> None:
    """Scenario 4: the alert resolved because its exporter was dead, and the gate had no figure any more."""

    async def scenario() -> None:
        settings = quick(tmp_path, automation={"prometheus_url": exporter.url}, timings={"fix_timeout_s": 120})
        async with Mine(redis_url, settings, waits_for_canaries(timeout="12s")) as parts, served(parts) as client:
            recovery = parts.open_run()
            await parts.until_step(recovery, "fix")
            await exporter.says("1")
            run = parts.run()
            await until_standing(parts, run, "holds")
            exporter.value = None
            before = parts.look().gate
            answer = await post(client, recorded("06"))
            assert (answer.status_code, answer.json()["runs"]) == (202, [])
            await until_standing(parts, run, "holds", "no data")

            held = "holds: step wait_for took longer than 12 s"
            await until(lambda: held in paged(parts, run), "the hold", 30)
            assert paged(parts, run)[0].startswith("no data: canary_success_ratio is no sample"), "and said before that"
            gate = parts.look().gate
            assert (gate.epoch, gate.drain_state, gate.admission_ratio) == (before.epoch, "drain", 0.0)
            assert parts.history(recovery).run.live

            exporter.value = "1"
            await parts.until_ended(run, "succeeded", 30)
            assert [_word(one) for one in standings(parts, run)] == ["holds", "no data", "holds"]
            assert held_s(parts, run) >= HELD_S, "what had held before the silence does not count"

    asyncio.run(scenario())


def test_a_gate_on_nan_neither_passes_nor_fails_and_nan_breaks_what_has_held(
    redis_url: str, tmp_path: Path, exporter: Exporter
) -> None:
    """Scenario 9: a ratio of no canaries is 0/0; three good looks, one NaN and three good looks are three."""

    async def scenario() -> None:
        await exporter.says("NaN")
        settings = quick(tmp_path, automation={"prometheus_url": exporter.url})
        async with Mine(redis_url, settings, waits_for_canaries(timeout="10s")) as parts:
            run = parts.run()
            # Its time without data is up: a person is called, and nothing is rolled back.
            await until(lambda: parts.journal(run, "paged"), "a page", 30)
            assert parts.history(run).run.live
            assert parts.journal(run, "failed") == []
            for value, *seen in (
                ("1", "no data", "holds"),
                ("NaN", "no data", "holds", "no data"),
                ("1", "no data", "holds", "no data", "holds"),
            ):
                exporter.value = value
                await until_standing(parts, run, *seen)
            await parts.until_ended(run, "succeeded", 30)
            assert held_s(parts, run) >= HELD_S

    asyncio.run(scenario())
