"""Who silences whom, and what the routing refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from rules.alert import SluicegateAction
from rules.generate import catalogue, render_alertmanager
from rules.routing import Inhibition, Unlabelled, check_labels, inhibitions
from sluicegate.errors import SettingsError
from sluicegate.records import AlertName
from sluicegate.settings import AutomationSettings, default_settings

ALERTS = catalogue(default_settings())


def test_nothing_that_acts_or_says_we_are_blind_is_ever_silenced() -> None:
    silenced = {name for inhibition in inhibitions(ALERTS) for name in inhibition.targets}

    never = {alert.name for alert in ALERTS if alert.action in (SluicegateAction.DRAIN, SluicegateAction.ROLLBACK)}
    never |= {AlertName.TELEMETRY_ABSENT, AlertName.TELEMETRY_STALE, AlertName.TELEMETRY_BLIND}
    never |= {AlertName.TELEMETRY_DAMAGED, AlertName.GATE_PINNED}
    never |= {AlertName.UNKNOWN_NOT_RECONCILED, AlertName.UNKNOWN_REPLAYED, AlertName.CONTRACT_EXCEEDED}
    never |= {AlertName.REOPENED_UNSAFE, AlertName.CONTROLLER_SILENT, AlertName.WATCHDOG}
    assert silenced
    assert silenced.isdisjoint(never)


def test_every_inhibition_compares_the_queue() -> None:
    config = yaml.safe_load(render_alertmanager(default_settings()))

    assert [rule["equal"] for rule in config["inhibit_rules"]] == [["queue"]] * 7


def test_an_inhibition_on_a_label_that_a_side_lacks_is_refused() -> None:
    drain, outlook = AlertName.QUEUE_AGE_CRITICAL, AlertName.DEADLINE_BREACH_FORECAST
    wrong = Inhibition("Too narrow.", sources=(drain,), targets=(outlook,), equal=("queue", "runbook"))

    with pytest.raises(Unlabelled, match="label runbook, but the alert SluicegateDeadlineBreachForecast has none"):
        check_labels([wrong], ALERTS)


def test_an_alert_without_its_queue_is_refused() -> None:
    nameless = [replace(alert, queue="") for alert in ALERTS]

    with pytest.raises(Unlabelled, match="label queue"):
        inhibitions(nameless)


def test_the_webhook_gets_whole_groups_and_their_end() -> None:
    config = yaml.safe_load(render_alertmanager(default_settings()))
    webhook = config["receivers"][0]["webhook_configs"][0]

    assert webhook["max_alerts"] == 0
    assert webhook["send_resolved"] is True
    assert config["route"]["group_by"] == ["alertname", "queue"]
    assert "http_config" not in webhook


def test_a_token_without_a_file_for_alertmanager_is_refused() -> None:
    guarded = default_settings().model_copy(update={"automation": AutomationSettings(token="secret")})

    with pytest.raises(SettingsError, match="no file holds it for Alertmanager"):
        render_alertmanager(guarded)


def test_the_token_itself_is_never_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    guarded = default_settings().model_copy(update={"automation": AutomationSettings(token="secret-word")})

    text = render_alertmanager(guarded, bearer_token_file=tmp_path_factory.mktemp("token") / "file")

    assert "secret-word" not in text
    assert "credentials_file" in text
