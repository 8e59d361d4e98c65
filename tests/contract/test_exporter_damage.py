"""Data that somebody wrote over or took away: no figure then looks better than it is, and the page names the damage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from exporter.catalogue import QUEUE_FIGURES
from exporter.figure import Kind
from exporter.server import Exporter
from sluicegate.job import CallKind, Outcome
from sluicegate.telemetry import STABLE_FIELDS, Part
from tests.exported import add_reader, reader_url
from tests.pages import Page, assert_says_nothing, names_of, reasons_of, scrape, serving
from tests.queues import OpenQueue, OpenQueueFunction

HOUR_MS = 3_600_000
COUNTERS = {figure.name for figure in QUEUE_FIGURES if figure.kind is Kind.COUNTER}
# Of these a lower value looks worse, or has stood still for longer; of all other gauges a higher one.
LOWER_IS_WORSE = (
    "deadline_slack_", "sluicegate_deadline_slack_", "sluicegate_class_deadline_slack_", "sluicegate_admission_ratio",
    "sluicegate_gate_initialised", "sluicegate_gate_readable", "sluicegate_controller_seen_", "canary_ok_count",
    "sluicegate_canary_consecutive_", "sluicegate_class_queue_age_seconds_bucket", "sluicegate_last_snapshot_",
)  # fmt: skip
# What says no more than what the contract or the instant is, and what only names a value.
NEITHER = ("sluicegate_snapshot_", "sluicegate_decision", "sluicegate_age_method_info", "sluicegate_gate_pinned")


# What no figure is made from, or whose loss only looks like never: it need not be named.
UNREAD = (
    "job:", "payload:", "worker", "queue:wake", "queue:refusals", "queue:pending", "queue:pairs", "lock:", "failed:",
    "reconcile:log", "control:log", "queue:delayed:cost", "running:cost", "control:decision", "control:seen",
    "canary_ok_count", "rollback_reason", "audit", "notices",
)  # fmt: skip


class Sick:
    """Hold a queue that is badly off in every way that a figure shows, and an exporter that reads it."""

    def __init__(self, queue: OpenQueue, exporter: Exporter) -> None:
        self.queue, self.client, self.exporter = queue, queue.client, exporter
        # What DUMP gives is no text.
        self._raw: Any = redis.Redis.from_url(queue.url)
        self.before = self.page()

    def close(self) -> None:
        self._raw.close()

    @contextmanager
    def without(self, key: str) -> Iterator[None]:
        """Take a key away, and bring it back as it was."""
        kept = self._raw.dump(key)
        assert kept is not None, f"{key} is not there"
        self.client.delete(key)
        yield
        self.client.delete(key)
        self._raw.restore(key, 0, kept)

    def page(self) -> Page:
        return scrape(self.exporter, "10")

    def looks_better(self, now: Page) -> list[tuple[str, ...]]:
        """Name each figure of the queue that says something better than the healthy reading of the sick queue did."""
        own = ("sluicegate_redis_up", "sluicegate_collector", "sluicegate_scrape", "sluicegate_build")
        shown = {key: at for key, at in now.items() if key[1:2] == ("default",) and not key[0].startswith(own)}
        return [key for key, at in shown.items() if _better(key, at, self.before)]


def _better(key: tuple[str, ...], at: float, before: Page) -> bool:
    name, was = key[0], before.get(key)
    if name.startswith(NEITHER):
        return False
    if name in ("drain_state", "rollback_reason"):
        return at == 1 and key[2] != "drain" and was != 1
    if was is None:
        return True
    if name in COUNTERS:
        return at < was
    if name.endswith("timestamp_seconds") and not name.startswith(LOWER_IS_WORSE):
        return at > was
    return at > was if name.startswith(LOWER_IS_WORSE) else at < was


def sicken(queue: OpenQueue) -> None:
    """Bring jobs into every state, let them be old and late, make the provider fail, and close the gate."""
    queue.settle(queue.started("send-mail"), Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    for kind in (CallKind.STATUS_5XX, CallKind.TIMEOUT, CallKind.OK):
        outcome = Outcome.SUCCEEDED if kind is CallKind.OK else Outcome.RETRY
        queue.settle(queue.started(), outcome, kind=kind, delay_ms=9_000, latency_ms=10)
    poison = queue.started("browse")
    queue.settle(poison, Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    assert queue.store.reconcile(poison.job_id, "block", actor="ada", reason="x", source="person")[0] == "moved"
    queue.started("test-patch")
    for job_class in ("lint-fix", "lint-fix", "test-patch"):
        queue.accepted(job_class)
    queue.submit("no-such-class")
    queue.store.confirm_duplicate("key-1", actor="ada", note="seen twice")
    queue.store.order("drain", "ada", "a test")
    for key in queue.client.keys("queue:fifo:*"):
        for job_id in queue.client.zrange(key, 0, -1):
            queue.client.zincrby(key, -HOUR_MS, job_id)


@pytest.fixture
def sick(open_queue: OpenQueueFunction, redis_url: str) -> Iterator[Sick]:
    # Its own check would find the damage; what is planted here is taken away again or stays on purpose.
    queue = open_queue(checked=False, lease_ms=600_000, timings={"provider_window_s": 600})
    add_reader(queue.client)
    sicken(queue)
    with serving(reader_url(redis_url), budget_s=10) as exporter:
        made = Sick(queue, exporter)
        yield made
        made.close()


def test_the_sick_queue_shows_that_it_is(sick: Sick) -> None:
    page = sick.before

    assert page["sluicegate_collector_success", "default"] == 1
    assert page["queue_age_p95_seconds", "default"] >= 3600
    assert page["provider_timeout_rate", "default"] > 0
    assert page["drain_state", "default", "drain"] == 1
    assert page["sluicegate_duplicate_side_effects_unacknowledged", "default"] == 1
    for state in ("pending", "delayed", "running", "unknown", "blocked"):
        assert page["sluicegate_jobs", "default", state] > 0
    assert set(STABLE_FIELDS) <= names_of(page)


def test_a_key_of_a_wrong_type_never_makes_a_figure_look_better(sick: Sick) -> None:
    for key in sorted(sick.client.keys("*")):
        wrong = ("ZADD", "1", "a") if sick.client.type(key) == "string" else ("SET", "a string")
        with sick.without(key):
            sick.client.execute_command(wrong[0], key, *wrong[1:])
            page = sick.page()

        assert sick.looks_better(page) == [], f"with {key} of a wrong type"
        said = page["sluicegate_collector_success", "default"] == 0 or page["sluicegate_gate_readable", "default"] == 0
        assert said or key.startswith(UNREAD), f"{key} of a wrong type is not named"


def test_a_container_that_is_gone_costs_its_figures_and_is_named(sick: Sick) -> None:
    parts = {
        "queue:fifo:lint-fix:-": Part.READY,
        "queue:ready:lint-fix:-": Part.DEADLINES,
        "queue:delayed": Part.DELAYED,
        "queue:delayed:lint-fix": Part.DEADLINES,
        "queue:leases": Part.RUNNING,
        "running:test-patch": Part.DEADLINES,
        "queue:unknown": Part.UNKNOWN,
        "queue:unknown:send-mail": Part.UNKNOWN,
        "queue:blocked": Part.BLOCKED,
        "queue:blocked:browse": Part.BLOCKED,
    }
    for key, part in parts.items():
        with sick.without(key):
            page = sick.page()

        assert sick.looks_better(page) == [], f"without {key}"
        assert page["sluicegate_collector_damaged", "default", part.value] == 1
        assert reasons_of(page) == ["damaged"]
        assert page["sluicegate_redis_up", "default"] == 1
        assert page["drain_state", "default", "drain"] == 1, "what is whole is shown"
    assert sick.page()["sluicegate_collector_success", "default"] == 1


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (("HSET", "counters", "admitted", "many"), "sluicegate_admissions_total"),
        (("HSET", "counters:lint-fix", "met", "1e3"), "sluicegate_class_deadline_outcomes_total"),
        (("HSET", "counters", "admitted", "9" * 5000), "sluicegate_admissions_total"),
        (("ZADD", "queue:fifo:lint-fix:-", "99999999999999", "from-the-future"), "queue_age_p95_seconds"),
        (("ZADD", "queue:fifo:lint-fix:-", "+inf", "from-nowhere"), "oldest_job_age_seconds"),
    ],
)
def test_a_text_or_an_instant_to_come_is_no_number(sick: Sick, words: tuple[str, ...], gone: str) -> None:
    sick.client.execute_command(*words)
    if words[0] == "ZADD":
        # Beside an entry in the index by deadline, as for every ready job.
        sick.client.zadd("queue:ready:lint-fix:-", {words[3]: 99_999_999_999_999})

    page = sick.page()

    before = {key for key in sick.before if key[0] == gone}
    assert {key for key in page if key[0] == gone} < before, f"{gone} is still shown"
    assert reasons_of(page) == ["damaged"]
    assert [key for key in sick.looks_better(page) if key[0] != "sluicegate_class_queue_age_seconds_bucket"] == []


@pytest.mark.parametrize("field", ["calls", "5xx", "timeout"])
def test_a_window_that_was_written_over_has_no_rate(sick: Sick, field: str) -> None:
    for key in sick.client.keys("provider:*"):
        sick.client.hset(key, field, "a few")

    page = sick.page()

    assert not {"provider_5xx_rate", "provider_timeout_rate", "sluicegate_provider_window_calls"} & names_of(page)
    assert page["sluicegate_collector_damaged", "default", Part.PROVIDER.value] == 1
    assert sick.looks_better(page) == []


@pytest.mark.parametrize("instant", ["abc", "99999999999999", "-5", "1e12", ""])
def test_a_controller_seen_at_no_instant_has_never_been_seen(sick: Sick, instant: str) -> None:
    sick.client.set("control:seen", instant)

    page = sick.page()

    assert page["sluicegate_controller_seen_timestamp_seconds", "default"] == 0
    assert page["sluicegate_admission_ratio", "default"] == 0
    assert sick.looks_better(page) == []


@pytest.mark.parametrize("damage", ["missing", "corrupt"])
def test_a_job_without_a_sound_record_still_counts_and_ages(sick: Sick, damage: str) -> None:
    for key in sick.client.keys("job:*"):
        sick.client.delete(key)
        if damage == "corrupt":
            sick.client.hset(key, mapping={"state": "well", "deadline": "soon", "admitted_at": "once"})

    assert sick.looks_better(sick.page()) == []


@pytest.mark.parametrize(
    "contract", ["{", "[]", '{"classes": {}}', '{"classes": {}, "cost_classes": {}, "thresholds": {}, "timings": {}}']
)
def test_a_contract_that_is_none_leaves_no_figure_that_was_measured(sick: Sick, contract: str) -> None:
    sick.client.hset("queue:settings", mapping={"contract": contract, "digest": "0" * 16})

    page = sick.page()

    assert not {"queue_age_p95_seconds", "sluicegate_jobs", "worker_inflight", "sluicegate_class_jobs"} & names_of(page)
    assert sick.looks_better(page) == []


def test_a_deadline_without_end_is_an_error_and_not_a_figure(sick: Sick) -> None:
    for key in sick.client.keys("queue:ready:*"):
        for job_id in sick.client.zrange(key, 0, -1):
            sick.client.zadd(key, {job_id: "+inf"})
    sick.client.zadd(
        "queue:delayed:lint-fix", dict.fromkeys(sick.client.zrange("queue:delayed:lint-fix", 0, -1), "inf")
    )

    assert sick.looks_better(sick.page()) == []


def test_a_user_who_may_not_read_the_totals_sees_no_totals(sick: Sick, redis_url: str) -> None:
    add_reader(sick.client, "default", extra=("resetkeys", "%R~queue:*", "%R~control:*", "%R~d*", "%R~a*", "%R~r*"))
    try:
        with serving(reader_url(redis_url)) as exporter:
            page = scrape(exporter)
    finally:
        add_reader(sick.client)

    if page["sluicegate_redis_up", "default"] == 0:
        assert_says_nothing(page, "rejected")
    else:
        assert not COUNTERS & names_of(page)
        assert reasons_of(page) == ["damaged"]
