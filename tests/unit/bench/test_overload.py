"""What is asked of a queue under overload, and how it is judged."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from bench.overload.picture import draw
from bench.overload.plan import CAPACITY_PER_S, FAIR_SHARE, MEAN_S, MIX, Ask, Policy, Shape, asks, contract_of
from bench.overload.scoring import Outcome, Score, score
from bench.overload_bench import goals, runs

STEADY = Shape("2x", 2, warm_s=10, count_s=20)
BURST = Shape("burst", 1.0, warm_s=30, count_s=60, burst=(3.0, 6.0, 30.0))


def outcome(
    job_class: str = "lint-fix", *, asked_s: float = 15.0, ended_s: float | None = 16.0, accepted: bool = True
) -> Outcome:
    deadline_s = asked_s + MIX[job_class].deadline_s
    return Outcome(job_class, 6.0, asked_s, deadline_s, accepted, succeeded=ended_s is not None, ended_s=ended_s)


def test_the_same_seed_asks_for_the_same_jobs_at_the_same_times() -> None:
    assert list(asks(STEADY, 1)) == list(asks(STEADY, 1))
    assert list(asks(STEADY, 1)) != list(asks(STEADY, 2))


def test_a_steady_load_asks_for_its_multiple_of_what_the_slots_can_do() -> None:
    asked = list(asks(Shape("2x", 2, warm_s=0, count_s=200), 1))
    assert len(asked) == pytest.approx(2 * CAPACITY_PER_S * 200, rel=0.03)
    assert sum(one.service_s for one in asked) / len(asked) == pytest.approx(MEAN_S, rel=0.03)
    shares = Counter(one.job_class for one in asked)
    assert {name: shares[name] / len(asked) for name in MIX} == pytest.approx(
        {"lint-fix": 0.7, "test-patch": 0.25, "refactor-plan": 0.05}, abs=0.01
    )


def test_a_burst_is_at_the_start_of_each_period_and_the_mean_is_what_it_says() -> None:
    def rate(found: list[Ask], since_s: float, until_s: float) -> float:
        return sum(since_s <= one.at_s % 30 < until_s for one in found) / 3 / (until_s - since_s) / CAPACITY_PER_S

    found = list(asks(BURST, 1))
    assert rate(found, 0, 6) == pytest.approx(3.0, rel=0.1)
    assert rate(found, 6, 30) == pytest.approx(0.5, rel=0.1)
    assert len(found) / 90 == pytest.approx(CAPACITY_PER_S, rel=0.05)
    assert all(before.at_s < after.at_s for before, after in pairwise(found))


def test_a_policy_differs_from_the_others_by_what_its_name_says() -> None:
    contracts = {policy: contract_of(policy, 0.7) for policy in Policy}
    assert {policy for policy, one in contracts.items() if one.backlog_limit} == {Policy.EDF_LIMIT}
    assert {policy for policy, one in contracts.items() if one.dispatch == "edf"} == {Policy.EDF, Policy.EDF_LIMIT}
    assert contracts[Policy.BOUNDED].effective_max_pending == round(CAPACITY_PER_S)
    assert contracts[Policy.THRESHOLDS].thresholds.reject_age_p95_seconds == 2.0
    assert contracts[Policy.FIFO].classes["lint-fix"].deadline_s == 6.0


def test_work_counts_when_it_ends_in_time_within_the_counted_seconds() -> None:
    judged = score("edf", STEADY, [outcome(), outcome(ended_s=9.0), outcome(asked_s=4.0, ended_s=11.0)], tries=3)
    assert judged.in_time == pytest.approx(6.0 / 120)
    assert judged.missed == 0.5, "one of the two that were settled in the counted seconds was late"
    assert judged.fair["lint-fix"] == pytest.approx(6.0 / (FAIR_SHARE["lint-fix"] * 120))
    assert judged.least_fair == 0


def test_an_accepted_job_that_never_ended_is_missed_at_its_deadline() -> None:
    judged = score("edf", STEADY, [outcome(ended_s=None), outcome(asked_s=28.0, ended_s=None)], tries=2)
    assert judged.missed == 1.0
    assert judged.asked == 2


def test_a_burst_is_judged_by_the_jobs_that_were_asked_for_in_the_counted_seconds() -> None:
    jobs = [outcome(asked_s=40.0, ended_s=41.0), outcome(asked_s=50.0, ended_s=None, accepted=False)]
    jobs += [outcome("test-patch", asked_s=89.0, ended_s=100.0), outcome(asked_s=95.0, ended_s=96.0)]
    judged = score("edf", BURST, jobs, tries=4)
    assert judged.in_time == pytest.approx(2 / 3)
    assert judged.missed == 0.0
    assert judged.fair == {"lint-fix": 0.5, "test-patch": 1.0, "refactor-plan": 0.0}
    assert judged.refused == {"unanswered": 1}


def told(shape: str, policy: str, in_time: float, missed: float = 0.0, fair: float = 1.0) -> Score:
    return Score(policy, shape, in_time, missed, {"lint-fix": 1.0, "test-patch": fair}, 1, 1, 1, 0.0, {})


def test_the_goals_are_those_of_the_limit_by_deadline_and_a_miss_is_said() -> None:
    scores = [
        told("2x", "fifo", 1.0),
        told("2x", "edf-backlog-limit", 0.96, 0.02, 0.79),
        told("burst", "edf-backlog-limit", 0.9),
    ]
    assert {row.name: row.met for row in goals(scores)} == {
        "overload_in_time": True,
        "overload_missed": False,
        "overload_fair": False,
        "overload_burst": False,
    }


def test_the_picture_has_a_bar_for_every_run_and_figure() -> None:
    scores = [told(shape, policy, 0.5) for shape in ("2x", "burst") for policy in Policy]
    drawn = draw(scores, "A & B")
    assert drawn.count("<title>") == 3 * len(scores)
    assert "A &amp; B" in drawn


def test_every_policy_runs_once_under_every_load() -> None:
    planned = [(shape.name, policy) for shape, policies in runs((STEADY, BURST), list(Policy)) for policy in policies]
    assert sorted(planned) == sorted((name, policy) for name in ("2x", "burst") for policy in Policy)
