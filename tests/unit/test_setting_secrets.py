"""A listing of the settings keeps secrets back."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.errors import SettingsError
from sluicegate.setting_rows import setting_rows
from sluicegate.settings import DRILL_CLASSES, parse


@pytest.mark.parametrize(
    ("redis_url", "shown"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("rediss://worker:s3cret@redis.example:6379/0", "rediss://***@redis.example:6379/0"),
        ("redis://:p@ss@redis.example/0", "redis://***@redis.example/0"),
        ("redis://redis.example/0?password=s3cret", "redis://redis.example/0?***"),
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


ADDRESS = "https://me:s3cret@ops.example:8443/hooks/abcdefghijklmnopqrstuvwxyz?token=s3cret"
SHOWN = "https://***@ops.example:8443/hooks/***?token=***"


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ({"automation": {"fix": {"hook_url": ADDRESS}}}, "automation.fix.hook_url"),
        ({"automation": {"fix": {"probe_url": ADDRESS}}}, "automation.fix.probe_url"),
        ({"automation": {"rollback_hook_url": ADDRESS}}, "automation.rollback_hook_url"),
        ({"automation": {"prometheus_url": ADDRESS}}, "automation.prometheus_url"),
        ({"automation": {"alertmanager_url": ADDRESS}}, "automation.alertmanager_url"),
        ({"automation": {"receivers": {"chat": {"kind": "slack", "url": ADDRESS}}}}, "automation.receivers.chat.url"),
        ({"monitoring": {"webhook_url": ADDRESS}}, "monitoring.webhook_url"),
        ({"provider_url": ADDRESS}, "provider_url"),
    ],
)
def test_a_listing_shows_of_an_address_what_may_be_shown(section: dict[str, Any], name: str) -> None:
    settings = parse({"contract": {"classes": DRILL_CLASSES}, **section}, "a file")
    (row,) = [row for row in setting_rows(settings, None) if row.name == name]
    assert row.here == row.in_force == SHOWN


def test_addresses_within_a_value_are_masked_as_well() -> None:
    automation = {"urls": {"switch": ADDRESS}, "commands": {"restart": {"argv": ["curl", f"--url={ADDRESS}", "-s"]}}}
    rows = setting_rows(parse({"contract": {"classes": DRILL_CLASSES}, "automation": automation}, "a file"), None)
    here = {row.name: row.here for row in rows}
    assert here["automation.urls"] == f'{{"switch": "{SHOWN}"}}'
    assert here["automation.commands.restart.argv"] == f'["curl", "--url={SHOWN}", "-s"]'
    assert "s3cret" not in str(rows)


def test_what_stands_for_an_address_and_is_none_is_kept_back() -> None:
    fix = {"hook_url": "ops.example/fix?token=s3cret"}
    settings = parse({"contract": {"classes": DRILL_CLASSES}, "automation": {"fix": fix}}, "a file")
    assert "s3cret" not in str(setting_rows(settings, None))


@pytest.mark.parametrize(
    "automation",
    [
        {"urls": {"switch": "ops.example/s3cret"}},
        {"prometheus_url": "s3cret@prometheus"},
        {"receivers": {"chat": {"kind": "slack", "url": "ops.example/s3cret"}}},
    ],
)
def test_an_error_repeats_no_address(automation: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as refused:
        parse({"contract": {"classes": DRILL_CLASSES}, "automation": automation}, "a file")
    assert "s3cret" not in str(refused.value)
