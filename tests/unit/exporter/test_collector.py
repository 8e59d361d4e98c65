"""A scrape reads every queue within its time, and says of each what was read now or why nothing was."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from exporter.collector import Collector, Observe, wait_s
from exporter.families import page
from exporter.reading import Failure, Scrape
from sluicegate.errors import StoreRejected, StoreUnavailable
from sluicegate.telemetry import Part, Telemetry
from tests.unit.exporter.telemetries import BUSY, samples

MakeCollector = Callable[..., Collector]


@pytest.fixture
def collector_of() -> Iterator[MakeCollector]:
    """Give a function that makes collectors, all closed after the test."""
    made: list[Collector] = []

    def make(budget_s: float = 10.0, **sources: Observe) -> Collector:
        made.append(Collector(sources, budget_s))
        return made[-1]

    yield make
    for collector in made:
        collector.close()


class Held:
    """Be a source that answers only when let go, and count how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def __call__(self, timeout_s: float) -> Telemetry:
        self.asked += 1
        self.begun.set()
        assert self.let_go.wait(10)
        return BUSY


def good(_: float) -> Telemetry:
    return BUSY


def unavailable(_: float) -> Telemetry:
    raise StoreUnavailable("Redis at 127.0.0.1:1 refused the connection.")


def rejected(_: float) -> Telemetry:
    raise StoreRejected("NOPERM this user has no permissions to run the 'eval_ro' command")


def broken(_: float) -> Telemetry:
    raise KeyError("provider")


def unshowable(_: float) -> Telemetry:
    return replace(BUSY, class_counters={"lint-fix": None})  # type: ignore[dict-item]


def damaged(_: float) -> Telemetry:
    return replace(BUSY, damaged=frozenset({Part.PROVIDER}))


def failures(scrape: Scrape) -> dict[str, Failure | None]:
    return {reading.queue: reading.failure for reading in scrape.readings}


@pytest.mark.parametrize(
    ("source", "failure", "redis_up"),
    [
        (unavailable, Failure.UNAVAILABLE, 0),
        (rejected, Failure.REJECTED, 0),
        (broken, Failure.INTERNAL, 0),
        (unshowable, Failure.INTERNAL, 1),
    ],
)
def test_one_failing_queue_says_why_and_never_blanks_another(
    collector_of: MakeCollector, source: Observe, failure: Failure, redis_up: float
) -> None:
    collector = collector_of(default=good, nightly=source)

    scrape = asyncio.run(collector.scrape())

    assert failures(scrape) == {"default": None, "nightly": failure}
    assert not scrape.complete
    shown = page(scrape)
    by_queue = {
        (sample.name, sample.labels["queue"]): sample.value
        for metric in shown
        for sample in metric.samples
        if sample.name in {"sluicegate_redis_up", "sluicegate_collector_success", "queue_age_p95_seconds"}
    }
    assert by_queue == {
        ("queue_age_p95_seconds", "default"): 12.5,
        ("sluicegate_redis_up", "default"): 1,
        ("sluicegate_collector_success", "default"): 1,
        ("sluicegate_redis_up", "nightly"): redis_up,
        ("sluicegate_collector_success", "nightly"): 0,
    }
    reasons = [s for m in shown if m.name == "sluicegate_collector_failure" for s in m.samples if s.value == 1]
    assert [(s.labels["queue"], s.labels["reason"]) for s in reasons] == [("nightly", failure.value)]


def test_what_is_damaged_is_named_and_what_is_whole_is_shown(collector_of: MakeCollector) -> None:
    scrape = asyncio.run(collector_of(default=damaged).scrape())

    assert failures(scrape) == {"default": Failure.DAMAGED}
    assert scrape.readings[0].redis_up
    shown = page(scrape)
    assert samples(shown, "oldest_job_age_seconds") == {(): 14.25}
    assert not samples(shown, "provider_5xx_rate")
    assert samples(shown, "sluicegate_collector_success") == {(): 0}
    parts = samples(shown, "sluicegate_collector_damaged")
    assert [labels for labels, value in parts.items() if value] == [(("part", "provider"),)]


def test_what_was_read_before_is_never_shown_again(collector_of: MakeCollector) -> None:
    answers = [unavailable, good]

    def next_answer(timeout_s: float) -> Telemetry:
        return answers.pop()(timeout_s)

    collector = collector_of(default=next_answer)

    async def twice() -> tuple[Scrape, Scrape]:
        return await collector.scrape(), await collector.scrape()

    first, second = asyncio.run(twice())

    assert samples(page(first), "oldest_job_age_seconds")
    assert not samples(page(second), "oldest_job_age_seconds")
    assert samples(page(second), "sluicegate_redis_up") == {(): 0}


def test_scrapes_that_overlap_share_one_read(collector_of: MakeCollector) -> None:
    held = Held()
    collector = collector_of(default=held)

    async def three() -> list[Scrape]:
        scrapes = [asyncio.create_task(collector.scrape()) for _ in range(3)]
        await asyncio.to_thread(held.begun.wait, 5)
        held.let_go.set()
        return await asyncio.gather(*scrapes)

    scrapes = asyncio.run(three())

    assert [scrape.complete for scrape in scrapes] == [True, True, True]
    assert held.asked == 1


class Direct:
    """Be a source in the event loop that answers when let go: with figures, or with an error."""

    def __init__(self, answer: Telemetry | Exception | None) -> None:
        self.asked = 0
        self.answer = answer
        self.let_go = asyncio.Event()

    async def __call__(self) -> Telemetry | None:
        self.asked += 1
        await self.let_go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def direct_collector(direct: Direct, in_thread: Observe, budget_s: float = 10.0) -> Collector:
    return Collector({"default": in_thread}, budget_s, direct={"default": direct})


@pytest.mark.parametrize("limit_s", [None, 1.0], ids=["all the time", "less than the read may take"])
@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (BUSY, None),
        (StoreUnavailable("no answer in time"), Failure.UNAVAILABLE),
        (StoreRejected("NOPERM"), Failure.REJECTED),
        (KeyError("provider"), Failure.INTERNAL),
    ],
    ids=str,
)
def test_a_queue_is_read_in_the_event_loop_where_there_is_a_way(
    answer: Telemetry | Exception, failure: Failure | None, limit_s: float | None
) -> None:
    direct = Direct(answer)
    direct.let_go.set()
    collector = direct_collector(direct, broken)

    scrape = asyncio.run(collector.scrape(limit_s))

    assert failures(scrape) == {"default": failure}
    assert direct.asked == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("read")]
    collector.close()


@pytest.mark.parametrize("limit_s", [None, 1.0])
def test_a_queue_that_only_its_thread_can_read_is_read_there(limit_s: float | None) -> None:
    direct = Direct(None)
    direct.let_go.set()
    collector = direct_collector(direct, rejected)

    assert failures(asyncio.run(collector.scrape(limit_s))) == {"default": Failure.REJECTED}
    collector.close()


def test_what_the_event_loop_took_before_it_handed_on_counts_towards_the_scrape() -> None:
    """Redis takes its time to say that the function is not there, and the thread then waits as well."""
    held = Held()

    async def slow() -> None:
        await asyncio.sleep(0.8)

    collector = Collector({"default": held}, 2.0, direct={"default": slow})
    started = time.monotonic()

    scrape = asyncio.run(collector.scrape(1.0))

    assert failures(scrape) == {"default": Failure.LATE}
    assert time.monotonic() - started < 1.5
    held.let_go.set()
    collector.close()


@pytest.mark.parametrize("limits_s", [(None, 0.05), (0.05, None), (0.05, 0.05)])
@pytest.mark.parametrize("answer", [BUSY, None], ids=["in the loop", "in its thread"])
def test_scrapes_that_overlap_share_one_read_of_the_event_loop(
    limits_s: tuple[float | None, float | None], answer: Telemetry | None
) -> None:
    """Each within its own time: whoever has none left is late, and the read goes on for the other."""
    direct = Direct(answer)
    collector = direct_collector(direct, good)

    async def both() -> list[Scrape]:
        scrapes = [asyncio.create_task(collector.scrape(limit_s)) for limit_s in limits_s]
        hurried = [task for task, limit_s in zip(scrapes, limits_s, strict=True) if limit_s is not None]
        await asyncio.wait(hurried)
        direct.let_go.set()
        return await asyncio.gather(*scrapes)

    scrapes = asyncio.run(both())

    assert direct.asked == 1
    expected = [None if limit_s is None else Failure.LATE for limit_s in limits_s]
    assert [failures(scrape)["default"] for scrape in scrapes] == expected
    collector.close()


def test_leaving_the_event_loop_ends_its_reads() -> None:
    direct = Direct(BUSY)
    collector = direct_collector(direct, good)

    async def late_then_gone() -> tuple[Scrape, set[str]]:
        late = await collector.scrape(0.05)
        await collector.leave()
        return late, {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}

    late, left = asyncio.run(late_then_gone())

    assert failures(late) == {"default": Failure.LATE}
    assert left == set()
    collector.close()


def test_scrapes_one_after_the_other_read_anew(collector_of: MakeCollector) -> None:
    held = Held()
    held.let_go.set()
    collector = collector_of(default=held)

    async def twice() -> None:
        await collector.scrape()
        await collector.scrape()

    asyncio.run(twice())

    assert held.asked == 2


def test_a_queue_that_does_not_answer_is_late_and_costs_the_other_nothing(collector_of: MakeCollector) -> None:
    held = Held()
    collector = collector_of(default=good, nightly=held)
    started = time.monotonic()

    async def late_then_back() -> tuple[Scrape, Scrape, int]:
        late = await collector.scrape(0.2)
        assert time.monotonic() - started < 1.5
        await collector.scrape(0.05)
        asked_while_hung = held.asked
        held.let_go.set()
        return late, await collector.scrape(), asked_while_hung

    late, back, asked_while_hung = asyncio.run(late_then_back())

    assert failures(late) == {"default": None, "nightly": Failure.LATE}
    assert asked_while_hung == 1
    assert failures(back) == {"default": None, "nightly": None}


def test_a_read_gets_less_time_than_the_scrape_so_that_it_can_say_why(collector_of: MakeCollector) -> None:
    given: list[float] = []

    def noting(timeout_s: float) -> Telemetry:
        given.append(timeout_s)
        return BUSY

    asyncio.run(collector_of(budget_s=1.0, default=noting).scrape())

    # Connecting and asking may each take as long, one after the other.
    assert 0 < 2 * given[0] < 1.0


def test_a_closed_collector_lets_its_threads_go(collector_of: MakeCollector) -> None:
    before = threading.active_count()
    collector = collector_of(default=good, nightly=good)
    asyncio.run(collector.scrape())
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("read")]

    collector.close()
    collector.close()

    for thread in threads:
        thread.join(5)
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("header", "budget_s", "expected"),
    [
        (None, 2.0, 2.0),
        ("10", 2.0, 2.0),
        ("1.5", 2.0, 1.25),
        ("0.1", 2.0, 0.05),
        ("0", 2.0, 2.0),
        ("-3", 2.0, 2.0),
        ("nan", 2.0, 2.0),
        ("inf", 2.0, 2.0),
        ("soon", 2.0, 2.0),
        ("", 2.0, 2.0),
    ],
)
def test_the_scrape_timeout_header_bounds_the_wait_and_nonsense_does_not(
    header: str | None, budget_s: float, expected: float
) -> None:
    assert wait_s(header, budget_s) == pytest.approx(expected)


def test_a_queue_that_nobody_scrapes_is_read_and_its_failure_is_in_the_log_once_as_is_its_end(
    collector_of: MakeCollector,
) -> None:
    outcomes = iter([rejected, rejected, rejected, good, good])
    all_read = threading.Event()

    def source(timeout_s: float) -> Telemetry:
        outcome = next(outcomes, None)
        if outcome is None:
            all_read.set()
        return (outcome or good)(timeout_s)

    async def scenario() -> None:
        watching = asyncio.create_task(collector.watch(0.001))
        assert await asyncio.to_thread(all_read.wait, 20)
        watching.cancel()

    collector = collector_of(default=source)
    with capture_logs() as said:
        asyncio.run(scenario())
    assert [event["event"] for event in said] == ["queue_unreadable", "queue_readable_again"]


def test_a_queue_that_is_scraped_is_not_read_beside(collector_of: MakeCollector) -> None:
    asked = 0

    def source(timeout_s: float) -> Telemetry:
        nonlocal asked
        asked += 1
        return good(timeout_s)

    async def scenario() -> None:
        await collector.scrape()
        watching = asyncio.create_task(collector.watch(1000))
        for _ in range(10):
            await asyncio.sleep(0)
        await collector.scrape()
        watching.cancel()

    collector = collector_of(default=source)
    asyncio.run(scenario())
    assert asked == 2
