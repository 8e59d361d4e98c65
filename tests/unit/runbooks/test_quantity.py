"""Quantities carry their unit, and nothing else passes for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks import quantity


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("2m", 120), ("500ms", 0.5), ("1h", 3600), ("1.5s", 1.5), (" 3s ", 3), ("168h", 604_800)],
)
def test_a_duration_is_read_with_its_unit(text: str, seconds: float) -> None:
    assert quantity.duration_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["10", "", "s", "10 s", "-1s", "1e3s", "0s", "0.0ms", "169h", "1m30s", "10S", "１０s", "10s\n2s", "nan", "inf"],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not "):
        quantity.duration_s(text)


@given(st.integers(min_value=1, max_value=7 * 86_400_000))
def test_a_duration_written_in_words_is_read_back_the_same(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert quantity.duration_s(quantity.in_words(seconds)) == pytest.approx(seconds)


@given(st.floats(min_value=1e-9, max_value=1e8, allow_nan=False))
def test_a_plain_number_has_no_exponent_and_is_the_same_number(value: float) -> None:
    text = quantity.plain(value)
    assert "e" not in text.lower()
    assert float(text) == value


@given(st.text(max_size=12))
def test_any_text_is_a_duration_within_its_bounds_or_refused(text: str) -> None:
    try:
        seconds = quantity.duration_s(text)
    except ValueError:
        return
    assert 0 < seconds <= quantity.LONGEST_S


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), ("100%", 1), ("0", 0), ("0.1", 0.1)])
def test_a_share_is_a_percentage_or_a_plain_number(text: str, share: float) -> None:
    assert quantity.ratio(text) == share


@pytest.mark.parametrize("text", ["101%", "1.01", "-1%", "five", "5%%", "", "5s"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"share|above"):
        quantity.ratio(text)


def test_the_steps_of_a_ramp_are_read() -> None:
    assert quantity.percents("10, 50, 100") == (10, 50, 100)


@pytest.mark.parametrize(
    "text", ["50, 10, 100", "10, 50", "0, 100", "10, 10, 100", "10, x, 100", "", "10;100", "10, 200"]
)
def test_a_ramp_that_does_not_grow_to_100_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not "):
        quantity.percents(text)


@pytest.mark.parametrize("text", ["3s", "1.5", "-1", "", "1e3", "1234567890"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a whole number"):
        quantity.count(text)
