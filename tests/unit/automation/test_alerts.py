"""What is read out of a notification, and what is not taken for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runbooks.alerts import NotUnderstood, parse

PAYLOADS = Path(__file__).parents[2] / "payloads"
RECORDED = sorted(PAYLOADS.glob("*.json"))


def body(**changes: Any) -> dict[str, Any]:
    (path,) = PAYLOADS.glob("05*.json")
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded | changes


def parsed(posted: dict[str, Any]) -> Any:
    return parse(json.dumps(posted).encode())


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_each_alert_has_its_own_status_whatever_the_group_says(path: Path) -> None:
    posted = json.loads(path.read_text(encoding="utf-8"))
    notification = parse(path.read_bytes())
    assert [alert.firing for alert in notification.alerts] == [one["status"] == "firing" for one in posted["alerts"]]
    assert all((alert.ends_at_ms == 0) == alert.firing for alert in notification.alerts)
    assert notification.truncated == posted["truncatedAlerts"]
    assert notification.group == posted["groupKey"]


def test_times_are_milliseconds_in_any_zone_and_the_year_1_is_no_end() -> None:
    (alert,) = body()["alerts"]
    moved = parsed(body(alerts=[{**alert, "startsAt": "2026-11-29T13:37:01.472+01:00"}]))
    assert moved.alerts[0].starts_at_ms == parsed(body()).alerts[0].starts_at_ms == 1795955821472
    assert moved.alerts[0].ends_at_ms == 0


def test_fields_of_later_versions_of_alertmanager_are_left_out() -> None:
    (alert,) = body()["alerts"]
    later = body(notification_reason="repeat", alerts=[{**alert, "silenceURL": "x"}])
    assert parsed(later) == parsed(body())


def test_a_long_group_key_is_cut_not_refused() -> None:
    assert len(parsed(body(groupKey="g" * 100_000)).group) == 1024


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"version": "5"}, "version '5'"),
        ({"version": 4}, "version"),
        ({"alerts": []}, "alerts"),
        ({"alerts": None}, "alerts"),
        ({"groupKey": None}, "groupKey"),
        ({"truncatedAlerts": "many"}, "truncatedAlerts"),
    ],
    ids=str,
)
def test_what_is_not_version_4_is_not_understood(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(NotUnderstood, match=why):
        parsed(body(**changes))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "pending"}, "status"),
        ({"fingerprint": ""}, "fingerprint"),
        ({"fingerprint": "a:b"}, "fingerprint"),
        ({"labels": {"queue": 7}}, "labels.queue"),
        ({"startsAt": "yesterday"}, "startsAt"),
    ],
    ids=str,
)
def test_an_alert_that_is_none_is_named_by_its_field(changes: dict[str, Any], why: str) -> None:
    (alert,) = body()["alerts"]
    with pytest.raises(NotUnderstood, match=rf"alerts\.0\.{why}"):
        parsed(body(alerts=[{**alert, **changes}]))


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b"null", b"[" * 200_000], ids=["empty", "cut", "binary", "null", "deep"]
)
def test_what_is_not_json_is_not_understood(raw: bytes) -> None:
    with pytest.raises(NotUnderstood, match="not an Alertmanager webhook"):
        parse(raw)


@pytest.mark.parametrize(("name", "said"), [("x" * 5000, "xxx: Input"), ("\x1b[2J\r\n", r"\x1b[2J\r\n': Input")])
def test_what_is_said_of_a_body_repeats_little_of_it_and_no_control_character(name: str, said: str) -> None:
    (alert,) = body()["alerts"]
    with pytest.raises(NotUnderstood) as refused:
        parsed(body(alerts=[{**alert, "labels": {name: 1}}]))
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300
    assert str(refused.value).isprintable()
