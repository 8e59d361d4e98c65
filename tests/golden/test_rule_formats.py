"""The same rules for Prometheus, Kubernetes, Mimir and vmalert: nothing is lost, and the text stays what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.certificate import certify
from rules.formats import FILES, MIMIR_MOST, Format, render_format
from rules.generate import ALERTMANAGER_FILE, RULES_FILE, Group, catalogue, chain, render_rules
from sluicegate.__main__ import dispatch
from sluicegate.records import AlertName
from sluicegate.settings import default_settings
from tests.unit.rules.settings import ALL

SETTINGS = default_settings()
# One alert that is kept, and one that has a waiver.
FEW = {AlertName.QUEUE_AGE_HIGH, AlertName.WATCHDOG}


def few() -> Group:
    return chain(SETTINGS, [alert for alert in catalogue(SETTINGS) if alert.name in FEW])


def groups_of(text: str) -> list[dict[str, Any]]:
    body = yaml.safe_load(text)
    return list(body["spec"]["groups"] if "spec" in body else body["groups"])


def rules_of(text: str) -> list[dict[str, Any]]:
    return [rule for group in groups_of(text) for rule in group["rules"]]


def named(rules: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {rule.get("alert") or rule["record"]: rule for rule in rules}
    assert len(found) == len(rules)
    return found


@pytest.mark.parametrize("shape", Format)
def test_a_format_s_text_is_what_it_was(shape: Format, repository: Path) -> None:
    golden = repository / "tests" / "golden" / "formats" / FILES[shape]

    assert render_format(SETTINGS, shape, [few()]) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", Format)
def test_no_rule_is_lost_doubled_or_changed(shape: Format, name: str) -> None:
    settings = ALL[name]()
    expected = named(rules_of(render_rules(settings)))
    if shape is Format.VMALERT_WITHOUT_KEEP:
        expected = {title: {k: v for k, v in one.items() if k != "keep_firing_for"} for title, one in expected.items()}

    text = render_format(settings, shape)

    assert named(rules_of(text)) == expected
    assert text == render_format(settings, shape)


def test_mimir_s_groups_are_small_and_their_names_differ() -> None:
    groups = groups_of(render_format(SETTINGS, Format.MIMIR))

    assert max(len(group["rules"]) for group in groups) <= MIMIR_MOST
    assert len({group["name"] for group in groups}) == len(groups)
    assert {group["interval"] for group in groups} == {"2s"}


def test_an_old_vmalert_finds_no_field_that_it_does_not_know() -> None:
    known = {"alert", "record", "expr", "for", "labels", "annotations"}

    assert {key for rule in rules_of(render_format(SETTINGS, Format.VMALERT_WITHOUT_KEEP)) for key in rule} == known
    assert any("keep_firing_for" in rule for rule in rules_of(render_format(SETTINGS, Format.VMALERT)))


def test_a_prometheusrule_bears_the_queue_s_name() -> None:
    body = yaml.safe_load(render_format(SETTINGS, Format.PROMETHEUSRULE))

    assert (body["apiVersion"], body["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert body["metadata"]["name"] == "sluicegate-default"


def test_a_prometheusrule_has_a_name_that_kubernetes_takes_and_no_other_queue_has() -> None:
    queues = ("night_jobs", "night-jobs")
    texts = (render_format(SETTINGS.model_copy(update={"queue": one}), Format.PROMETHEUSRULE) for one in queues)
    names = [yaml.safe_load(text)["metadata"]["name"] for text in texts]

    assert names == ["sluicegate-night.jobs", "sluicegate-night-jobs"]


@pytest.mark.parametrize("shape", Format)
def test_a_chain_over_groups_or_storage_is_in_the_certificate(shape: Format) -> None:
    longer_s = {Format.PROMETHEUS: 0, Format.PROMETHEUSRULE: 0}.get(shape, 2)
    worst = {one.alert.name: one.worst_s for one in certify(SETTINGS)}

    for one in certify(SETTINGS, shape):
        assert one.worst_s == worst[one.alert.name] + longer_s


def test_the_command_writes_the_rule_file_of_its_format_and_no_tests_for_it(tmp_path: Path) -> None:
    assert dispatch(["rules", "generate", "--format", "mimir", "--out", str(tmp_path)]) == 0

    assert {path.name for path in tmp_path.iterdir()} == {FILES[Format.MIMIR], ALERTMANAGER_FILE, "runbooks"}
    assert RULES_FILE not in {path.name for path in tmp_path.iterdir()}
