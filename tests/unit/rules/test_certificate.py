"""How late a page can come: every term counts what it should, and settings that are too slow are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rules.alert import Severity
from rules.certificate import Certificate, certify, chained_groups, refusals
from rules.generate import catalogue, groups
from sluicegate.__main__ import dispatch
from sluicegate.records import AlertName
from sluicegate.settings import Settings, default_settings


def with_monitoring(**changes: float) -> Settings:
    settings = default_settings()
    return settings.model_copy(update={"monitoring": settings.monitoring.model_copy(update=changes)})


def of(settings: Settings, name: AlertName = AlertName.QUEUE_AGE_CRITICAL) -> Certificate:
    return next(one for one in certify(settings) if one.alert.name == name)


def term(certificate: Certificate, name: str) -> float:
    return next(term.seconds for term in certificate.terms if term.name == name)


def test_every_page_has_its_certificate_and_nothing_else_has() -> None:
    pages = {alert.name for alert in catalogue(default_settings()) if alert.severity is Severity.PAGE}

    assert {one.alert.name for one in certify(default_settings())} == pages


def test_default_settings_certify_within_45_seconds_for_the_class_of_60() -> None:
    settings = default_settings()
    certificates = certify(settings)

    assert settings.contract.shortest_deadline_s == 60
    assert refusals(settings, certificates) == ()
    assert max(one.worst_s for one in certificates if not one.alert.waits_by_design) <= 45
    assert of(settings).worst_s == 2 + 2 + 2 + 4 + 10 + 1


@pytest.mark.parametrize(
    ("changes", "name", "seconds"),
    [
        ({"scrape_interval_s": 5}, "scrape interval", 5),
        ({"scrape_interval_s": 5}, "scrape answer", 2),
        ({"scrape_interval_s": 0.5}, "scrape answer", 0.5),
        ({"evaluation_interval_s": 3}, "evaluation interval", 3),
        ({"alert_for_s": 10}, "for", 10),
        # `for` has passed at an evaluation: the third one after 5 s at intervals of 2 s.
        ({"alert_for_s": 5}, "for", 6),
        ({"alert_for_s": 0}, "for", 0),
        ({"group_interval_s": 20}, "group interval", 20),
        ({"group_wait_s": 30}, "group wait", 30),
        ({}, "chained groups", 0),
        ({}, "what the expression waits for", 0),
        ({}, "delivery", 1),
    ],
)
def test_a_term_is_its_stage_s_longest_time(changes: dict[str, float], name: str, seconds: float) -> None:
    assert term(of(with_monitoring(**changes)), name) == seconds


def test_what_an_expression_waits_for_itself_is_counted() -> None:
    assert term(of(default_settings(), AlertName.TELEMETRY_STALE), "what the expression waits for") == 8


def test_a_record_in_another_group_costs_an_evaluation_more() -> None:
    alerts, panels = groups(default_settings())
    alert = next(one for one in alerts.alerts if one.name == AlertName.QUEUE_AGE_CRITICAL)

    assert chained_groups(alerts, alert) == 0
    assert chained_groups(replace(alerts, records=panels.records), alert) == 1


def test_the_usual_settings_are_refused_and_the_term_to_cut_is_named() -> None:
    usual = with_monitoring(scrape_interval_s=15, evaluation_interval_s=15, alert_for_s=60, group_wait_s=30)

    refused = refusals(usual, certify(usual))
    first = next(one for one in refused if one.certificate.alert.name == AlertName.QUEUE_AGE_CRITICAL)

    assert (first.class_name, first.certificate.worst_s) == ("lint-fix", 123)
    assert first.sentence.endswith(
        "can take 123 s, which leaves -63 s of the 60 s of class lint-fix, under the least of 15 s:"
        " cut `for` from 60 s first of all (`monitoring.alert_for_s`)."
    )


@pytest.mark.parametrize(("wait_s", "refused"), [(34, False), (34.1, True)])
def test_a_quarter_of_the_deadline_is_just_enough(wait_s: float, refused: bool) -> None:
    settings = with_monitoring(group_wait_s=wait_s)

    found = refusals(settings, [of(settings)])

    assert bool(found) is refused
    if found:
        assert "cut `group wait` from 34.1 s to 34 s or less (`monitoring.group_wait_s`)." in found[0].sentence


def test_a_page_that_waits_by_design_is_held_against_no_deadline() -> None:
    settings = default_settings()
    holding = of(settings, AlertName.EXECUTOR_HOLDING)

    assert holding.worst_s > 300
    assert refusals(settings, [holding]) == ()
    assert {one.certificate.alert.name for one in refusals(settings, [_in_earnest(holding)])} == {holding.alert.name}


def _in_earnest(certificate: Certificate) -> Certificate:
    return replace(certificate, alert=replace(certificate.alert, waits_by_design=""))


def test_the_command_shows_every_page_and_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["rules", "certify"]) == 0
    said = capsys.readouterr().out

    assert "SluicegateQueueAgeCritical\t21 s\tscrape interval 2, scrape answer 2, " in said
    assert "\t65%\t88%\t98%" in said


def test_the_command_refuses_with_a_sentence_and_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sluicegate.yaml"
    file.write_text("contract: {classes: {lint: {deadline_s: 60}}}\nmonitoring: {alert_for_s: 60}\n")

    assert dispatch(["rules", "certify", "--settings", str(file), "--json"]) == 1
    out, err = capsys.readouterr()
    body: dict[str, Any] = json.loads(out)

    assert err.count("cut `for` from 60 s to 28 s or less (`monitoring.alert_for_s`).") >= 1
    assert body["refused"] == err.splitlines()
    page = next(page for page in body["pages"] if page["alert"] == "SluicegateQueueAgeCritical")
    assert page["worst_s"] == sum(term["seconds"] for term in page["terms"]) == 77
    assert page["left"] == {"lint": round(1 - 77 / 60, 4)}
