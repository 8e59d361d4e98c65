"""A step that waits for somebody else's figures, asked of a real Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from automation.page.evidence import PageEvidence
from automation.page.feed import Feed
from automation.page.run import verdicts
from drill.children import Children
from drill.monitoring import Prometheus, PrometheusOptions
from runbooks.prometheus import ask
from runbooks.verdict import Verdict
from tests.automation_parts import ON_BOTH, quick, until
from tests.contract.test_automation_verbs import HOLD, Mine, book

pytestmark = ON_BOTH


@pytest.fixture(scope="module")
def prometheus() -> Iterator[str]:
    """Return the address of a real Prometheus that scrapes itself."""
    with Children() as children:
        server = Prometheus(children, PrometheusOptions((), {}, scrape_interval_s=1, evaluation_interval_s=1))
        server.start()
        yield f"http://127.0.0.1:{server.port}"


def waiting(*pass_if: dict[str, str], **more: Any) -> Any:
    return book({"wait_for": {"pass_if": list(pass_if), "no_data": "hold", **HOLD, **more}})


def test_a_wait_goes_on_by_prometheus_figures(redis_url: str, tmp_path: Path, prometheus: str) -> None:
    async def scenario() -> None:
        settings = quick(tmp_path, automation={"prometheus_url": prometheus})
        mine = waiting({"promql": "vector(0.02)", "holds": "< 0.05"}, {"promql": "scalar(vector(3))", "holds": ">= 3"})
        async with Mine(redis_url, settings, mine) as parts:
            await parts.until_ended(parts.run(), "succeeded")

    asyncio.run(scenario())


def test_what_prometheus_cannot_say_is_no_pass(redis_url: str, tmp_path: Path, prometheus: str) -> None:
    async def scenario() -> None:
        settings = quick(tmp_path, automation={"prometheus_url": prometheus}, timings={"fix_page_s": 0.3})
        mine = waiting({"promql": "nothing_like_this", "holds": "< 0.05"})
        async with Mine(redis_url, settings, mine) as parts:
            run = parts.run()
            await until(lambda: parts.journal(run, "paged"), "a page")
            ((_, said),) = parts.told(run, "progress")
            assert said.startswith("no data: nothing_like_this is no sample")
            assert "no series" in said
            assert parts.history(run).run.live

    asyncio.run(scenario())


def test_without_an_address_nothing_is_asked_and_nothing_passes(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        mine = waiting({"promql": "vector(1)", "holds": "== 1"})
        async with Mine(redis_url, quick(tmp_path), mine) as parts:
            run = parts.run()
            await until(lambda: parts.told(run, "progress"), "a look")
            assert "automation.prometheus_url is not set" in parts.told(run, "progress")[0][1]

    asyncio.run(scenario())


def test_the_page_asks_for_what_a_live_run_s_gate_needs_while_somebody_watches(
    redis_url: str, tmp_path: Path, prometheus: str
) -> None:
    async def scenario() -> None:
        settings = quick(tmp_path, automation={"prometheus_url": prometheus})
        mine = waiting({"promql": "vector(0.02)", "holds": "< 0.01"})
        books = {mine.name: mine}
        async with Mine(redis_url, settings, mine) as parts:
            run = parts.run()
            await until(lambda: parts.journal(run, "started"), "its step")
            feed = Feed(parts.store, settings.automation.page)
            evidence = PageEvidence(feed, books, settings)
            for part in (feed, evidence):
                await part.start()
            try:
                async for state in feed.watch():
                    if state.reading is not None and evidence.samples:
                        break
            finally:
                for part in (evidence, feed):
                    await part.stop()
            assert feed.state.reading is not None
            (gate,) = verdicts(feed.state.reading, books, settings, evidence.samples)
            (check,) = gate.checks
            assert (gate.run, gate.verb, check.value, check.verdict) == (run, "wait_for", 0.02, Verdict.FAIL)

    asyncio.run(scenario())


def test_its_errors_are_told(redis_url: str, prometheus: str) -> None:
    assert ask(prometheus, "vector(1) + on() group_left() vector(2)").value is not None
    assert "HTTP Status Code 4" in ask(prometheus, 'label_replace(vector(1), "a", "b", "c", "(")').why
    assert ask(prometheus, "vector(0) / vector(0)").why == "NaN"
    assert "series" in ask(prometheus, "vector(1) or label_replace(vector(2), 'a', 'b', '', '')").why
