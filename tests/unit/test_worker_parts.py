"""The pure parts of a worker: its clock, its rules, its report, and what it makes of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import StoreRejected, UsageError
from sluicegate.job import CallKind, Effects, Job
from sluicegate.provider_call import ProviderCall, body_of, kind_of, parse_retry_after
from sluicegate.queue_clock import QueueClock
from sluicegate.settings import default_settings, faster
from sluicegate.stop_report import Ended, StopReport
from sluicegate.store_link import longer
from sluicegate.worker_rules import rules_of


class HandClock:
    """Stand still until told otherwise."""

    def __init__(self) -> None:
        self.wall_ms = 5_000_000
        self.seconds = 100.0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


JOB = Job("j1", "lint-fix", 1_010_000, 1, 0, "k1", 7, 8, 0, Effects.KEYED, '{"a":1}', canary="run-1")


def test_the_queues_time_is_the_machines_until_an_answer_tells_it() -> None:
    clock = HandClock()
    queue_clock = QueueClock(clock)
    assert queue_clock.now_ms() == 5_000_000
    queue_clock.learn(1_000_000, 99.0, 100.0)
    assert queue_clock.now_ms() == 1_000_500
    clock.seconds, clock.wall_ms = 101.0, 0
    assert queue_clock.remaining_s(1_010_000) == pytest.approx(8.5)


def test_the_shortest_round_trip_of_ten_seconds_counts() -> None:
    clock = HandClock()
    queue_clock = QueueClock(clock)
    queue_clock.learn(1_000_000, 99.99, 100.0)
    clock.seconds = 101.0
    queue_clock.learn(1_000_600, 100.0, 101.0)  # slow, so 500 ms out
    assert queue_clock.now_ms() == pytest.approx(1_001_005)
    clock.seconds = 110.5
    queue_clock.learn(1_010_000, 109.5, 110.5)  # slow, but the good one is too old
    assert queue_clock.now_ms() == pytest.approx(1_010_500)


@given(st.floats(0, 5), st.floats(0, 1), st.integers(0, 2_000_000_000))
def test_a_sample_is_wrong_by_at_most_half_its_round_trip(round_trip_s: float, share: float, at_ms: int) -> None:
    clock = HandClock()
    queue_clock = QueueClock(clock)
    queue_clock.learn(at_ms, 100.0, 100.0 + round_trip_s)
    clock.seconds = 100.0 + round_trip_s
    true_ms = at_ms + round_trip_s * (1 - share) * 1000
    assert abs(queue_clock.now_ms() - true_ms) <= round_trip_s * 500 + 0.01


def test_the_rules_are_those_of_the_stored_contract() -> None:
    contract = faster(default_settings(), 5).contract
    rules = rules_of({"contract": contract.for_redis(), "digest": contract.digest()})
    assert rules is not None
    assert (rules.lease_s, rules.renew_every_s, rules.digest) == (6.0, 2.0, contract.digest())
    assert (rules.retry.margin_s, rules.retry.call_timeout_max_s, rules.retry.backoff_first_s) == (0.4, 2.0, 0.4)


def test_without_a_contract_there_are_no_rules_and_a_damaged_one_is_said() -> None:
    assert rules_of({}) is None
    for damaged in ("{", "[]", '{"timings":{}}'):
        with pytest.raises(StoreRejected, match="can't be read"):
            rules_of({"contract": damaged})


@given(st.lists(st.sampled_from(list(Ended)), max_size=8), st.integers(0, 3))
def test_the_parts_of_a_stop_report_add_up(ends: list[Ended], strangers: int) -> None:
    report = StopReport(frozenset(f"j{n}" for n in range(len(ends))))
    for n, ended in enumerate(ends):
        report = report.after(f"j{n}", ended)
    for n in range(strangers):
        report = report.after(f"later-{n}", Ended.FINISHED)
    fields = report.fields()
    parts = ("expired", "requeued", "unknown", "finished")
    assert report.whole
    assert fields["lease_released"] == sum(int(fields[part]) for part in parts)
    assert fields["lease_released"] == sum(ended is not Ended.LOST for ended in ends)


def test_a_stop_report_reads_as_one_line() -> None:
    report = StopReport(frozenset({"a", "b"})).after("a", Ended.REQUEUED).after("b", Ended.LOST)
    assert report.line() == "action=stop_pull lease_released=1 expired=0 requeued=1 unknown=0 finished=0"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, CallKind.OK),
        (201, CallKind.STATUS_OTHER),
        (302, CallKind.STATUS_OTHER),
        (429, CallKind.STATUS_OTHER),
        (499, CallKind.STATUS_OTHER),
        (500, CallKind.STATUS_5XX),
        (599, CallKind.STATUS_5XX),
        (600, CallKind.STATUS_OTHER),
    ],
)
def test_only_200_is_done(status: int, kind: CallKind) -> None:
    assert kind_of(status) is kind


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("", None),
        ("Thu, 01 Jan 1970 00:16:50 +99999999999999", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, lambda: 1000.0) == seconds


def test_a_canary_says_so_in_its_body() -> None:
    assert body_of(JOB) == b'{"job_id":"j1","class":"lint-fix","payload":"{\\"a\\":1}","canary":true}'


@pytest.mark.parametrize(
    "url",
    [
        "nowhere",
        "ftp://x",
        "http://",
        "http://[::1",
        "",
        "http://a b:80",
        "http://a/b c",
        " http://a",
        "http://a\n",
        "http://\x1ba",
    ],
)
def test_an_address_that_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="The provider's address"):
        ProviderCall(url)


def test_a_back_off_doubles_to_a_second() -> None:
    waits = [0.05]
    for _ in range(6):
        waits.append(longer(waits[-1]))
    assert waits == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
