"""What users of other queues reported of their figures, played on this one: each says what is so, and no more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drill.server import QueueServer
from tests.crowd import Crowd
from tests.queues import contract_of


@pytest.fixture
def crowd(server: QueueServer) -> Iterator[Crowd]:
    timings = {"provider_window_s": 30, "final_retention_s": 120}
    made = Crowd(server.url, contract_of(max_pending=1000, max_running=100, lease_ms=30_000, timings=timings))
    yield made
    made.close()


def test_a_dead_workers_jobs_are_in_flight_until_their_leases_end_and_then_unknown(crowd: Crowd) -> None:
    """From every one of them: nothing stays at 1, nothing goes below 0."""
    crowd.submit(*[("send-mail", 900_000)] * 3)
    crowd.claim(3, "dies")
    alive = crowd.page()
    crowd.wait(30_001)
    ended = crowd.page()
    crowd.store.sweep()
    swept = crowd.page()
    assert crowd.store.reconcile("j0", "retry", actor="ada", reason="x", source="ledger")[0] == "moved"
    mended = crowd.page()

    pages = (alive, ended, swept, mended)
    assert [page["worker_inflight",] for page in pages] == [3, 0, 0, 0]
    assert [page["sluicegate_class_inflight", "send-mail"] for page in pages] == [3, 0, 0, 0]
    assert [page["sluicegate_jobs", "unknown"] for page in pages] == [0, 0, 3, 2]
    assert swept["sluicegate_lease_expiries_total",] == 3


def test_a_window_that_has_emptied_has_no_rate_and_its_totals_stay(crowd: Crowd) -> None:
    crowd.submit(*[("lint-fix", 900_000)] * 60)
    for number, job in enumerate(crowd.claim(60)):
        kind = "5xx" if number < 4 else "timeout" if number < 6 else "ok"
        crowd.settle(job, "succeeded" if kind == "ok" else "retry", kind, 100_000)
    full = crowd.page()
    crowd.wait(40_000)
    emptied = crowd.page()

    assert full["provider_5xx_rate",] == pytest.approx(4 / 60)
    assert full["provider_timeout_rate",] == pytest.approx(2 / 60)
    assert full["sluicegate_provider_window_calls",] == 60
    assert ("provider_5xx_rate",) not in emptied
    assert emptied["sluicegate_provider_window_calls",] == 0
    for kind, count in (("ok", 54), ("5xx", 4), ("timeout", 2)):
        assert emptied["sluicegate_provider_calls_total", kind] == count


def test_workers_that_are_all_stuck_look_like_no_health(crowd: Crowd) -> None:
    crowd.submit(*[("lint-fix", 900_000)] * 150)
    assert len(crowd.claim(100)) == 100
    before = crowd.page()
    crowd.wait(10_000)
    after = crowd.page()

    assert after["worker_inflight",] == 100
    assert after["sluicegate_window_completions",] == 0
    assert ("sluicegate_predicted_wait_seconds",) not in after
    assert after["queue_age_p95_seconds",] - before["queue_age_p95_seconds",] == pytest.approx(10)


def test_totals_outlive_the_records_they_were_counted_from(crowd: Crowd) -> None:
    crowd.submit(*[("lint-fix", 10_000)] * 100)
    for job in crowd.claim(100):
        crowd.settle(job)
    for key in crowd.client.keys("job:*"):
        crowd.client.delete(key)

    assert crowd.page()["sluicegate_class_ended_total", "lint-fix", "succeeded"] == 100


def test_a_retry_that_waits_is_not_old_and_a_parked_one_is_counted_doomed_in_time(crowd: Crowd) -> None:
    crowd.submit(("lint-fix", 60_000))
    crowd.wait(5_000)
    crowd.settle(crowd.claim(1)[0], "retry", "timeout", 40_000)
    parked = crowd.page()
    margin_ms = crowd.contract.timings.margin_s * 1000
    crowd.wait(round(55_000 - margin_ms))
    at_the_margin = crowd.page()
    crowd.wait(1)
    past_it = crowd.page()

    assert (parked["oldest_job_age_seconds",], parked["sluicegate_jobs", "delayed"]) == (0, 1)
    assert [page["sluicegate_doomed_jobs",] for page in (parked, at_the_margin, past_it)] == [0, 0, 1]


def test_jobs_of_a_time_to_come_leave_no_age(crowd: Crowd) -> None:
    """The clock was set back: what was admitted before is ready since a time that is yet to come."""
    crowd.submit(("lint-fix", 900_000), ("test-patch", 900_000))
    crowd.wait(60_000)
    crowd.submit(("lint-fix", 900_000))
    crowd.clock.now_us -= 30_000_000
    crowd.wait(0)

    page = crowd.unchecked()

    assert page["sluicegate_future_ready_jobs",] == 1
    assert ("queue_age_p95_seconds",) not in page
    assert ("deadline_slack_p10_seconds",) not in page
    assert page["sluicegate_jobs", "pending"] == 3
