"""A listing of the settings keeps secrets back."""

from __future__ import annotations

import pytest

from sluicegate.setting_rows import setting_rows
from sluicegate.settings import DRILL_CLASSES, parse


@pytest.mark.parametrize(
    ("redis_url", "shown"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("rediss://worker:s3cret@redis.example:6379/0", "rediss://***@redis.example:6379/0"),
        ("redis://:p@ss@redis.example/0", "redis://***@redis.example/0"),
    ],
)
def test_a_listing_shows_neither_token_nor_password(redis_url: str, shown: str) -> None:
    # given settings with a token and a password
    body = {"redis_url": redis_url, "automation": {"token": "t0ken"}, "contract": {"classes": DRILL_CLASSES}}
    # when they are listed
    rows = {row.name: row for row in setting_rows(parse(body, "a file"), None)}
    # then neither is in the listing
    assert rows["redis_url"].here == rows["redis_url"].in_force == shown
    assert rows["automation.token"].here == "***"
    assert "s3cret" not in str(rows)
    assert "t0ken" not in str(rows)
