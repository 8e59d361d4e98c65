"""What one threshold would have changed over a week, and the guide that says how to find out."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from drill.server import QueueServer
from rules.difference import with_values
from sluicegate.__main__ import dispatch
from sluicegate.records import AlertName
from sluicegate.store import Store
from tests.guides import Guide
from tests.recorded import by_the_minute
from tests.week import AGED_S, Week, settings_file

COMMANDS = (
    "rules backtest",
    "rules diff --settings sluicegate.yaml --set",
    "rules diff --settings sluicegate.yaml --with",
    "rules certify",
    "rules generate",
    "queue apply",
    "dashboards generate",
)
GUIDES_URL = "http://127.0.0.1:9090"
TUNED = "thresholds.reject_age_p95_seconds=110"


def changed(week: Week, capsys: pytest.CaptureFixture[str], value: str) -> dict[str, Any]:
    """Give what a value would have changed in the hours around the age that came to nothing."""
    words = week.words(
        "rules", "diff", "--set", value, "--backtest", "--json", from_s=AGED_S - 3600, to_s=AGED_S + 7200
    )
    assert dispatch(words) == 0
    body: dict[str, Any] = json.loads(capsys.readouterr().out)["backtest"]
    return body


def test_a_lower_threshold_shows_the_page_for_nothing_that_it_would_have_cost(
    week: Week, capsys: pytest.CaptureFixture[str]
) -> None:
    assert changed(week, capsys, TUNED)["changes"] == [], "the age was never between the two"

    body = changed(week, capsys, "thresholds.drain_age_p95_seconds=125")
    (change,) = [one for one in body["changes"] if one["alert"] == AlertName.QUEUE_AGE_CRITICAL]
    assert (change["effect"], change["for_nothing"]) == ("appears", True)
    assert round((change["at"] - week.begins_s) / 60) == AGED_S // 60 + 1
    assert (body["before"]["false_pages"], body["after"]["false_pages"]) == (0, 1)


def test_the_guides_commands_run_in_the_guides_order(
    week: Week,
    redis_server: QueueServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = by_the_minute().model_copy(update={"redis_url": redis_server.url})
    tuned = with_values(settings, [TUNED])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    contract = settings.contract
    with closing(Store.connect(redis_server.url, settings.queue)) as store:
        assert store.init_queue(contract.for_redis(), contract.digest(), "ann", "a test").answer == "moved"
    settings_file(tmp_path, tuned).rename("tuned.yaml")
    settings_file(tmp_path, settings)
    filled = {"NAME": "ann", "WHY": "a test", GUIDES_URL: week.url}
    with Guide.named("tune-one-threshold") as guide:
        for beginning in COMMANDS:
            _, *words = shlex.split(guide.next(f"sluicegate {beginning}").line)
            assert dispatch([filled.get(word, word) for word in words]) == 0, f"{beginning}: {capsys.readouterr()}"
    said = capsys.readouterr().out
    assert "contract.thresholds.reject_age_p95_seconds: 120 → 110" in said
    assert "nothing would have fired otherwise" in said
    made = {path.name for path in tmp_path.iterdir()}
    assert {"week.svg", "monitoring"} <= made
