"""Times as a person types them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sluicegate.errors import UsageError
from sluicegate.period import lasting_s, period_ms

NOW = datetime(2026, 3, 8, 12, 0, tzinfo=UTC)
HOUR_MS = 3_600_000


def test_a_time_is_a_duration_ago_or_a_date_in_utc_or_its_own_zone() -> None:
    now_ms = round(NOW.timestamp() * 1000)
    assert period_ms("7d", "now", NOW) == (now_ms - 7 * 24 * HOUR_MS, now_ms)
    assert period_ms("2026-03-08T09:00", "1h", NOW) == (now_ms - 3 * HOUR_MS, now_ms - HOUR_MS)
    assert period_ms("2026-03-08T09:00Z", "2026-03-08T12:00+02:00", NOW) == (now_ms - 3 * HOUR_MS, now_ms - 2 * HOUR_MS)


@pytest.mark.parametrize(("since", "until"), [("1h", "1h"), ("1h", "2h"), ("2026-03-09", "now")])
def test_a_time_that_ends_before_it_begins_is_refused(since: str, until: str) -> None:
    with pytest.raises(UsageError, match="is not before"):
        period_ms(since, until, NOW)


@pytest.mark.parametrize("word", ["yesterday", "7", "-1d", "7 d", "", "1e3s", "2026-13-01"])
def test_what_is_no_time_is_refused_with_its_option(word: str) -> None:
    with pytest.raises(UsageError, match="--since"):
        period_ms(word, "now", NOW)


def test_a_duration_has_its_unit_and_a_bound() -> None:
    assert [lasting_s("--step", text) for text in ("500ms", "1.5s", "2m", "1h", "1d", "2w")] == [
        0.5, 1.5, 120, 3600, 86_400, 1_209_600,
    ]  # fmt: skip
    for text in ("10", "999999999w", "1y"):
        with pytest.raises(UsageError, match="--step"):
            lasting_s("--step", text)
