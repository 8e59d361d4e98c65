"""Every exported figure is what the records say, after any sequence of operations, on Redis and on Valkey."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from drill.server import QueueServer
from exporter.catalogue import QUEUE_FIGURES
from sluicegate import functions
from sluicegate.contract import Dispatch
from sluicegate.settings import Contract
from tests.brute_force import percentile
from tests.crowd import Crowd
from tests.machine.faults import Fault
from tests.machine.figures import FiguresDriver, FiguresLab
from tests.machine.play import Length, play_on
from tests.queues import contract_of

SOURCE = functions.library()
# What a run may take on a machine on which much else runs.
BUSY_S = 600
SHORT = Length(examples=3, steps=12)
# What no run of the machine makes other than 0: its clock never goes back, and it takes no snapshot.
NEVER_SEEN = {"sluicegate_future_ready_jobs", "sluicegate_last_snapshot_timestamp_seconds"}
# What a short run may leave at 0.
RARELY_SEEN = {
    "provider_5xx_rate",
    "provider_timeout_rate",
    "sluicegate_canary_failures",
    "sluicegate_class_predicted_wait_seconds",
    "sluicegate_fenced_steps_total",
    "sluicegate_predicted_wait_seconds",
    "sluicegate_provider_window_failed_calls",
    "sluicegate_reject_returns_total",
    "sluicegate_runs_refused_total",
}

FAULTS = (
    Fault(
        "an age of one rank too young",
        "return total - math.ceil(share * total) + 1",
        "return math.min(total, total - math.ceil(share * total) + 2)",
    ),
    Fault("a running job past its deadline is not doomed", " + below(running, q.now)", ""),
    Fault(
        "a lease that has ended is in flight",
        "'queue:leases', '(' .. digits(q.now), '+inf')",
        "'queue:leases', '-inf', '+inf')",
    ),
    Fault(
        "a rank of all classes is too high",
        "if missing == 0 then return score end",
        "if missing <= 0 then return score end",
    ),
    Fault("a refusal is not counted by class", "  count_class(q, job.class, 'refused:' .. reason)\n", ""),
    Fault("an undeclared class has no figures", "  class_layout(q, OTHER, layout)\n", ""),
    Fault(
        "canaries are in the count of the running",
        "counts.canaries = counts[keys[2]]",
        "counts.canaries = 0",
    ),
)


def play_figures(server: QueueServer, source: str, length: Length) -> FiguresLab:
    lab = FiguresLab.on(server.url, source)
    try:
        play_on(lab, FiguresDriver, length)
    finally:
        lab.close()
    return lab


def figures_of_nothing(lab: FiguresLab) -> set[str]:
    """Name the figures that were 0, or had no sample, in every reading."""
    return {figure.sample_name for figure in QUEUE_FIGURES} - set(lab.seen)


@pytest.mark.timeout(BUSY_S)
def test_after_any_operation_every_figure_equals_a_brute_force_reading(server: QueueServer) -> None:
    lab = play_figures(server, SOURCE, SHORT)
    print(f"{lab.compared} readings compared")
    assert lab.compared > 200
    assert figures_of_nothing(lab) <= NEVER_SEEN | RARELY_SEEN


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_a_longer_run_of_another_seed_keeps_them_equal(server: QueueServer) -> None:
    print(
        f"{play_figures(server, SOURCE, Length(examples=10, drawn_anew=True, shrinks=True)).compared} readings compared"
    )


@pytest.mark.timeout(BUSY_S)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_planted_in_a_figure_is_found(redis_server: QueueServer, fault: Fault) -> None:
    planted = fault.planted(SOURCE)
    with pytest.raises(AssertionError):
        play_figures(redis_server, planted, SHORT)


@pytest.fixture
def crowd(server: QueueServer, request: pytest.FixtureRequest) -> Iterator[Crowd]:
    changes = getattr(request, "param", {})
    made = Crowd(server.url, contract_of(max_pending=100_000, strict_classes=False, **changes))
    yield made
    made.close()


CLASSES = ("lint-fix", "test-patch", "refactor-plan", "browse", "nobody-declared-this")


@pytest.mark.parametrize(
    "crowd", [{}, {"dispatch": Dispatch.EDF.value}, {"backlog_limit": 1.0}], indirect=True, ids=str
)
def test_percentiles_over_many_jobs_of_many_classes_are_exact(crowd: Crowd) -> None:
    draw = random.Random(4)
    for _ in range(12):
        share = draw.random() ** 2
        crowd.submit(
            *(
                (draw.choice(CLASSES) if draw.random() < share else "lint-fix", draw.randrange(200_000, 9_000_000))
                for _ in range(draw.choice((1, 5, 100)))
            )
        )
        crowd.wait(draw.choice((0, 1, 700, 9_000)))
        for job in crowd.claim(2):
            crowd.settle(job, draw.choice(("succeeded", "not_executed")), delay_ms=50_000)
        crowd.page()


@pytest.mark.parametrize("n", [1, 2, 19, 20, 21, 99, 100, 101, 200])
def test_a_percentile_is_the_nearest_rank_at_every_size(crowd: Crowd, n: int) -> None:
    for number in range(0, n, 10):
        crowd.submit(*[(CLASSES[number % 3], 900_000)] * min(10, n - number))
        crowd.wait(1_000)

    page = crowd.page()

    ages = [(-(-n // 10) - number // 10) * 1.0 for number in range(n)]
    assert page["queue_age_p95_seconds",] == pytest.approx(percentile(ages, 0.95))


def test_the_distribution_stands_on_the_same_side_of_each_threshold_as_the_decisions(crowd: Crowd) -> None:
    """A job of exactly a threshold counts as over it, as for the gauge's >=."""
    bounds = crowd.contract.thresholds
    crowd.submit(("lint-fix", 900_000))
    for bound in (bounds.recovered_age_p95_seconds, bounds.reject_age_p95_seconds, bounds.drain_age_p95_seconds):
        crowd.wait(round(bound * 1000) - crowd.clock.now_ms + _started(crowd))
        page = crowd.page()
        assert page["queue_age_p95_seconds",] == bound
        assert page["sluicegate_class_queue_age_seconds_bucket", "lint-fix", repr(bound)] == 0
        assert page["sluicegate_class_queue_age_seconds_bucket", "lint-fix", "+Inf"] == 1


def _started(crowd: Crowd) -> int:
    return int(crowd.client.hget("job:j0", "admitted_at"))


def test_ten_thousand_misspelt_classes_are_one_and_their_series_do_not_grow(crowd: Crowd) -> None:
    def size() -> int:
        return len(crowd.page())

    few = size()
    for start in range(0, 10_000, 100):
        crowd.submit(*((f'class-{start + number} "quoted\\\n', 900_000) for number in range(100)))
    page = crowd.unchecked()

    assert {key[1] for key in page if key[0] == "sluicegate_class_jobs"} == {*crowd.contract.classes, "other"}
    assert page["sluicegate_class_jobs", "other", "pending"] == 10_000
    assert sum(value for key, value in page.items() if key[0] == "sluicegate_class_jobs") == 10_000
    assert len(page) <= few + 20


def test_a_class_taken_out_of_the_settings_is_gone_at_once_and_its_jobs_are_others(crowd: Crowd) -> None:
    crowd.submit(("browse", 900_000), ("browse", 900_000), ("lint-fix", 900_000))
    assert crowd.page()["sluicegate_class_jobs", "browse", "pending"] == 2
    left = crowd.contract.model_dump(mode="json")
    del left["classes"]["browse"]
    contract = Contract.model_validate(left)
    assert crowd.store.apply_settings(contract.for_redis(), contract.digest(), "ada", "fewer") == "moved"

    page = crowd.page()

    assert not [key for key in page if "browse" in key]
    assert page["sluicegate_class_jobs", "other", "pending"] == 2
    assert page["sluicegate_class_admitted_total", "other"] == 0, "what was counted before stays where it was"


def test_a_reading_asks_redis_for_as_little_at_any_depth(crowd: Crowd) -> None:
    """Its cost is that of the commands inside: some 120 where three classes lie among each other."""
    asked = []
    draw = random.Random(9)
    for batches in (5, 60):
        for _ in range(batches):
            crowd.submit(*((draw.choice(CLASSES[:3]), draw.randrange(200_000, 9_000_000)) for _ in range(100)))
            crowd.wait(draw.randrange(2_000))
        crowd.client.config_resetstat()
        crowd.reader.observe()
        calls = {name: row["calls"] for name, row in crowd.client.info("commandstats").items()}
        asked.append(sum(calls.values()) - sum(calls.get(f"cmdstat_{name}", 0) for name in ("info", "eval_ro")))

    assert asked[1] <= asked[0] + 20
    assert max(asked) <= 130
