"""Under steady load a queue takes what its retention says and no more: the server's own memory and key count."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from drill.server import ServerKind, ServerOptions
from tests.servers import MakeServer
from tests.steady_load import Sample, SteadyLoad, contract_with, lasting_keys, samples

# A key that lasts may hold so much more at the end than at the beginning: what is under way, and a stream's last block.
ENTRIES_MORE_MAX = 150


@dataclass(frozen=True, slots=True)
class Course:
    """Say how long is kept what has ended, how long it takes until as much goes as comes, and how long is measured.

    growth_max: how much more there may be at the end than at the beginning, as a share of all that the queue takes.
    """

    retention_s: float
    warm_up_s: float
    measured_s: float
    windows: int
    growth_max: float


def windows(found: Sequence[Sample], course: Course) -> list[tuple[float, float]]:
    """Give the mean memory and the mean number of keys of each window."""
    length_s = course.measured_s / course.windows
    means = []
    for number in range(course.windows):
        inside = [one for one in found if number * length_s <= one.at_s < (number + 1) * length_s]
        means.append(
            (statistics.fmean(one.used_memory for one in inside), statistics.fmean(one.keys for one in inside))
        )
    return means


def growth(series: Sequence[float]) -> float:
    """Give how much a straight line through a series rises from its beginning to its end, as a share of its mean."""
    places = range(len(series))
    slope, _ = statistics.linear_regression(list(places), series)
    return slope * (len(series) - 1) / statistics.fmean(series)


def test_a_series_that_grows_is_told_from_one_that_swings() -> None:
    assert abs(growth([100, 101, 99, 100, 100])) < 0.02
    assert growth([100, 101, 102, 103, 104]) == pytest.approx(4 / 102)


@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    "course",
    [
        # The shorter, the more of it is chance: there the entries of each key are the sharper look.
        pytest.param(Course(2.5, 4.0, 10.0, 5, 0.04), id="retention-2.5s"),
        pytest.param(Course(20.0, 45.0, 300.0, 15, 0.02), id="retention-20s", marks=pytest.mark.slow),
    ],
)
def test_memory_and_keys_stay_flat_under_load(course: Course, make_server: MakeServer) -> None:
    url = make_server(ServerOptions(kind=ServerKind.REDIS)).url
    load = SteadyLoad(url, contract_with(course.retention_s))
    (empty, *_) = samples(url, 0.1)
    load.fill_logs()
    with load.running():
        samples(url, course.warm_up_s)
        before = lasting_keys(url)
        found = samples(url, course.measured_s)
        after = lasting_keys(url)
        load.answers["expired"] = load.expired()
    series = windows(found, course)
    memory, keys = [used - empty.used_memory for used, _ in series], [count for _, count in series]
    more = {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}
    told = "\n".join(
        [
            f"empty queue: {empty.used_memory / 1024:,.0f} KiB, {empty.keys} keys",
            *(f"window {n}: {used / 1024:+,.0f} KiB, {keys[n]:,.0f} keys" for n, used in enumerate(memory)),
            f"growth: memory {growth(memory):+.2%}, keys {growth(keys):+.2%}; more entries in {more or 'no key'}",
            f"what happened: {dict(load.answers)}",
        ]
    )
    print(told)
    # Nothing is proved of what did not happen.
    for what in ("accepted", "unknown_class", "browser_limit", "unknown", "blocked", "expired", "run"):
        assert load.answers[what] > 10, told
    assert [name for name, count in more.items() if count > ENTRIES_MORE_MAX] == [], told
    assert abs(growth(keys)) < 2 * course.growth_max, told
    assert growth(memory) < course.growth_max, told
