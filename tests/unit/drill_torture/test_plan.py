"""What a torture will do is fixed by its seed, and every job is submitted twice."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from drill.command_torture import parse
from drill.server import ServerKind
from drill.torture.contract import CLASSES, FORGOTTEN, UNDECLARED, settings_for
from drill.torture.plan import ASKS_AFTER_S, Plan, StrikeKind, lives, strikes
from drill.torture.run import TortureOptions, demands_of, plan_of
from sluicegate.errors import UsageError

LONG = Plan(jobs=10_000, seed=7, rate_per_s=60, callers=3, workers=4, loses=False)


def test_the_same_seed_plans_the_same() -> None:
    assert list(lives(LONG)) == list(lives(LONG))
    assert strikes(LONG) == strikes(LONG)
    assert list(lives(LONG)) != list(lives(replace(LONG, seed=8)))
    assert strikes(LONG) != strikes(replace(LONG, seed=8))


def test_the_callers_read_the_plan_that_was_written() -> None:
    placed = replace(LONG, redis_url="redis://127.0.0.1:1/0", api_urls=("http://a", "http://b"), starts_at=12.5)
    assert Plan.of(json.loads(placed.to_json())) == placed


def test_every_job_has_its_own_key_and_two_different_callers() -> None:
    planned = list(lives(LONG))
    assert len({life.key for life in planned}) == LONG.jobs
    assert all(life.first != life.twin for life in planned)
    assert {life.first for life in planned} == {life.twin for life in planned} == set(range(LONG.callers))


def test_a_third_of_the_twins_come_at_the_same_moment_and_none_too_late_to_be_answered() -> None:
    planned = list(lives(LONG))
    assert sum(life.lag_s == 0 for life in planned) > LONG.jobs / 3
    assert all(life.at_s + life.lag_s <= LONG.lasts_s + ASKS_AFTER_S + 4 for life in planned)


def test_all_classes_come_in_their_shares() -> None:
    seen = Counter(life.job_class for life in lives(LONG))
    for name, declared in CLASSES.items():
        assert seen[name] == pytest.approx(declared.share * LONG.jobs, rel=0.3)
    assert UNDECLARED not in settings_for("redis://127.0.0.1:1/0", 1, "http://127.0.0.1:1", 4).contract.classes


def test_the_provider_forgets_the_keys_of_what_is_not_keyed() -> None:
    assert set(FORGOTTEN) == {"lint-fix", "send-mail"}


@pytest.mark.parametrize("seed", range(20))
def test_a_long_torture_kills_everything_and_the_server_twice(seed: int) -> None:
    planned = strikes(replace(LONG, seed=seed))
    kinds = Counter(strike.kind for strike in planned)
    assert kinds[StrikeKind.KILL_SERVER] == 2
    assert kinds[StrikeKind.KILL_WORKER] >= 30
    assert set(kinds) == set(StrikeKind)
    assert all(0 < strike.at_s < LONG.lasts_s for strike in planned)
    assert [strike.at_s for strike in planned] == sorted(strike.at_s for strike in planned)
    assert not any(strike.loses_gate for strike in planned)


@pytest.mark.parametrize("seed", range(20))
def test_a_losing_torture_loses_the_gate_in_its_second_kill_of_the_server(seed: int) -> None:
    planned = strikes(replace(LONG, seed=seed, loses=True))
    kills = [strike for strike in planned if strike.kind is StrikeKind.KILL_SERVER]
    assert [strike.loses_gate for strike in kills] == [False, True]


def test_a_short_torture_still_kills_workers_and_the_server_twice(tmp_path: Path) -> None:
    plan = plan_of(TortureOptions(300, 7, loses=False, server=ServerKind.REDIS, report_dir=tmp_path))
    demands = demands_of(plan)
    assert plan.lasts_s < 10
    assert (demands.worker_kills, demands.server_kills, demands.durable) == (2, 2, True)


@pytest.mark.parametrize(("appendfsync", "loses"), [("always", False), ("everysec", True)])
def test_the_modes_are_the_servers_own_words(appendfsync: str, loses: bool, tmp_path: Path) -> None:
    assert parse(300, appendfsync, 1, "redis", tmp_path).loses is loses


@pytest.mark.parametrize("appendfsync", ["no", "sometimes"])
def test_another_mode_is_refused_with_a_hint(appendfsync: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"(?s)always.*everysec"):
        parse(300, appendfsync, 1, "redis", tmp_path)
