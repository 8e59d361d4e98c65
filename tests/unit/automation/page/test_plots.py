"""The plots: samples kept within bounds, gaps left as gaps, and the lines that a figure is compared with."""

from __future__ import annotations

from dataclasses import replace

from automation.page.plot import HEIGHT, WIDTH, bands, plot
from automation.page.samples import Sample, Samples
from sluicegate.telemetry import Part
from tests.readings import AT_MS, EMPTY, with_gate

NAME = "queue_age_p95_seconds"


def sample(at_s: float, value: float | None, state: str = "admit") -> Sample:
    return Sample(AT_MS + round(1000 * at_s), {NAME: value}, state)


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in line.split())]


def test_however_often_it_is_read_only_so_many_samples_are_kept_and_none_older_than_the_span() -> None:
    samples = Samples(600)
    for tenth in range(20_000):
        samples.add(sample(tenth / 10, float(tenth)))
        assert len(samples) <= 151
    kept = list(samples)
    assert kept[-1].values[NAME] == 19_999.0
    assert 590 <= (kept[-1].at_ms - kept[0].at_ms) / 1000 <= 600
    steps = {kept[place + 1].at_ms - kept[place].at_ms for place in range(len(kept) - 2)}
    assert min(steps) >= 4000


def test_a_move_of_the_gate_is_kept_where_it_happened() -> None:
    samples = Samples(600)
    for tenth in range(100):
        samples.add(sample(tenth / 10, 0.0, "drain" if tenth >= 37 else "admit"))
    (first_in_drain, *_) = [one for one in samples if one.drain_state == "drain"]
    assert first_in_drain.at_ms == AT_MS + 3700


def test_what_could_not_be_read_is_a_gap_of_one_sample_and_no_value() -> None:
    samples = Samples(600)
    samples.miss(AT_MS)
    assert len(samples) == 0
    samples.add(sample(0, 1.0))
    samples.miss(AT_MS + 5_000)
    samples.miss(AT_MS + 6_000)
    samples.add(sample(10, 2.0))
    assert [one.values.get(NAME) for one in samples] == [1.0, None, 2.0]
    drawn = plot(list(samples), NAME, 600, [], "age")
    assert len(drawn.lines) == 2
    assert [band.state for band in bands(list(samples), 600)] == ["admit", "admit"]


def test_a_clock_that_was_set_back_starts_the_plot_anew() -> None:
    samples = Samples(600)
    samples.add(sample(100, 1.0))
    samples.add(sample(0, 2.0))
    assert [one.values[NAME] for one in samples] == [2.0]


def test_everything_drawn_lies_inside_the_plot_and_the_bounds_too() -> None:
    samples = [sample(second, value) for second, value in enumerate((-40.0, 3.0, 900.0, 12.0))]
    drawn = plot(samples, NAME, 600, [(20.0, "near"), (25.0, "over")], "age")
    (line,) = drawn.lines
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points(line))
    heights = [float(bound.y) for bound in drawn.bounds]
    assert all(0 <= y <= HEIGHT for y in heights)
    assert heights[0] > heights[1], "the higher bound is drawn higher"
    assert points(line)[-1][0] == WIDTH
    assert "lowest -40" in drawn.said
    assert "highest 900" in drawn.said


def test_one_sample_is_a_dot_and_none_is_said() -> None:
    (line,) = plot([sample(0, 0.0)], NAME, 600, [], "age").lines
    assert len(set(points(line))) == 1
    assert plot([sample(0, None)], NAME, 600, [(1.0, "over")], "age") == plot([sample(0, None)], NAME, 600, [], "age")
    assert plot([sample(0, None)], NAME, 600, [], "age").said.endswith("no sample")
    assert bands([], 600) == ()


def test_a_damaged_figure_is_no_sample() -> None:
    assert Sample.of(EMPTY).values[NAME] == 0.0
    assert Sample.of(replace(EMPTY, damaged=frozenset({Part.READY}))).values[NAME] is None
    assert Sample.of(with_gate(EMPTY, canary_ok_count=2)).values["canary_ok_count"] == 2.0
