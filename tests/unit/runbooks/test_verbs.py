"""The lines of verbs say exactly what will be done, and what the settings do not allow is refused before any run."""

from __future__ import annotations

from typing import Any

import pytest

from runbooks.context import Context
from runbooks.plan import lines_by_place, step_text
from runbooks.reading import read_runbook
from runbooks.verbs.wait_for import WaitFor
from runbooks.where import Where
from sluicegate.errors import SettingsError
from sluicegate.settings import default_settings, parse
from tests.unit.runbooks.files import changed, read, shipped

HOLD = {"timeout": "30s", "on_timeout": "hold"}


def context(**automation: Any) -> Context:
    body = default_settings().model_dump(mode="json")
    body["automation"] |= automation
    return Context(parse(body, "a test"))


def line(verb: str, params: dict[str, Any], within: Context) -> str:
    def change(body: dict[str, Any]) -> None:
        body["steps"] = [{verb: {**params, **HOLD}}]

    book = changed(change, "reject-and-prepare")
    return step_text(book.steps[0], book, within)


CALL = {"url": "{{ automation.urls.switch }}", "idempotency_key": "{{ run.id }}/switch", "on_unknown": "probe"}
URLS = {"switch": "https://bot:hunter2@ops.example/switch?token=s3cret", "health": "http://ops.example/health"}


def test_an_http_step_says_what_it_sends_and_no_secret() -> None:
    text = line("http", {**CALL, "probe": {"url": "{{ automation.urls.health }}"}}, context(urls=URLS))
    assert text.startswith(
        "POST https://***@ops.example/switch?token=*** with Idempotency-Key {run}/switch; "
        "a lost outcome is probed by GET http://ops.example/health; what was certainly not carried out is called again"
    )
    assert "hunter2" not in text
    assert "s3cret" not in text


def test_without_a_probe_a_lost_outcome_is_a_persons() -> None:
    assert "a lost outcome waits for a named person" in line("http", CALL, context(urls=URLS))
    assert line("http", CALL, context()).startswith("the settings name no address: a named person passes the step")


@pytest.mark.parametrize("name", ["urls.Switch", "urls", "urls.a.b", "commands.x", "token"])
def test_no_other_name_of_the_section_may_stand_in_a_value(name: str) -> None:
    with pytest.raises(SettingsError, match="not a declared name"):
        line("http", {**CALL, "url": f"{{{{ automation.{name} }}}}"}, context())


def test_a_command_says_its_words_time_and_environment() -> None:
    programs = {"restart": {"argv": ["/usr/bin/systemctl", "restart", "mill"], "environment": ["HOME"]}}
    text = line("command", {"name": "restart", "on_unknown": "hold"}, context(commands=programs))
    assert text.startswith(
        "start /usr/bin/systemctl restart mill (restart) without a shell and with PATH, LANG, SLUICEGATE_*, HOME alone "
        "of the environment, for at most 60s; exit 0 is success; a lost outcome waits for a named person"
    )


def test_a_command_that_is_not_allowed_is_refused_with_those_that_are() -> None:
    with pytest.raises(SettingsError, match=r"'rm' is not among automation\.commands") as refused:
        line("command", {"name": "rm", "on_unknown": "hold"}, context(commands={"restart": {"argv": ["x"]}}))
    assert refused.value.hint == "Allowed are: restart."


def test_a_provider_is_set_by_its_address_or_not_at_all() -> None:
    def with_provider(body: dict[str, Any]) -> None:
        step = {"endpoint": "{{ automation.urls.good }}", "timeout": "20s", "on_timeout": "rollback"}
        body["steps"].insert(3, {"set_provider": step})
        body["rollback"]["reasons"]["manual_operator_hold"].append("set_provider")

    book = changed(with_provider)
    text = lines_by_place(book, context(urls={"good": "http://good.example:8080/"}))[4]
    assert text.startswith("point the workers at http://good.example:8080/ (control:endpoint)")
    assert lines_by_place(book, context())[4].startswith("the settings name no endpoint")


def test_a_rollback_says_what_follows_the_closing_in_its_order() -> None:
    book = changed(lambda body: None)
    lines = lines_by_place(book, context(rollback_hook_url="http://ops.example/recreate"))
    assert [place for place in lines if place >= 100] == [100, 101]
    assert lines[100] == "point the workers back at where they were before this run (control:endpoint)"
    assert lines[101].startswith("POST http://ops.example/recreate with Idempotency-Key {run}/rollback")
    assert [place for place in lines_by_place(book, context()) if place >= 100] == [100]


@pytest.mark.parametrize(("held", "look_ms", "gap_ms"), [("60s", 10_000, 30_000), ("1s", 200, 1000), (None, 200, 1000)])
def test_looks_are_near_enough_to_be_of_one_piece(held: str | None, look_ms: float, gap_ms: float) -> None:
    fields = {"pass_if": ["unknown_jobs == 0"], **({"for": held} if held else {})}
    step, within = WaitFor.read(fields, Where("mine.yaml")), context()
    assert step.look_ms(within) == pytest.approx(look_ms)
    assert step.longest_gap_ms(within) == gap_ms
    assert step.look_ms(within) * 2 <= step.longest_gap_ms(within)


@pytest.mark.parametrize(
    ("verb", "params", "match"),
    [
        ("command", {"name": "rm -rf /", "on_unknown": "hold"}, "does not match"),
        ("command", {"name": "x", "argv": ["rm"]}, "no such field exists"),
        ("notify", {"text": "x", "to": ["slack:#oncall"]}, "no such field exists"),
        ("notify", {"text": "{{ alert.labels.queue }}"}, "not a declared name"),
        ("notify", {"text": "one\nline"}, "line break"),
        ("wait_for", {"pass_if": []}, "minItems"),
        ("wait_for", {"pass_if": [{"promql": "up"}]}, "wait_for.pass_if"),
        ("http", {"url": "http://x", "on_unknown": "hold"}, "idempotency_key is missing"),
        ("reject", {"to": "open"}, "no such field exists"),
        ("set_provider", {}, "endpoint is missing"),
        ("rollback", {}, "no such field exists"),
    ],
)
def test_parameters_of_a_verb_are_typed(verb: str, params: dict[str, Any], match: str) -> None:
    body = shipped("reject-and-prepare")
    body["steps"] = [{verb: {**params, **HOLD}}]
    with pytest.raises(SettingsError, match=match):
        read(body)


def test_alert_data_is_never_a_template() -> None:
    body = shipped("reject-and-prepare")
    body["trigger"]["alerts"]["team"] = "{{ run.id }}"
    book = read_runbook(body, "mine.yaml")
    assert not book.trigger.matches({"runbook": "reject-and-prepare", "team": "{run}"})
    assert book.trigger.matches({"runbook": "reject-and-prepare", "team": "{{ run.id }}"})
