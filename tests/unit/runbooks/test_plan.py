"""A plan's lines are what will run; its figures, verdicts and obstacles are of this instant."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runbooks import library
from runbooks.context import Context
from runbooks.plan import Plan, plan
from runbooks.show import plan_text, plan_values
from runbooks.start import Heard
from runbooks.verbs.fix import Fix, FixBy
from sluicegate.all_queues import Holder, Ordered, Standing
from sluicegate.run_replies import Asked
from sluicegate.settings import Settings, default_settings, faster, parse
from sluicegate.telemetry import Telemetry
from tests.readings import live
from tests.unit.runbooks.readings import HEALTHY, calls, gate, reading

RECOVER = library.load_builtin("drain-and-recover")
AUDIT = library.load_builtin("rollback-and-audit")
SETTINGS = default_settings()
GOLDEN = Path(__file__).parent / "golden"
QUIET = Standing(1_700_000_000_000, None, None, (), ())
ILL = reading(
    queue_age_p95_seconds=27.5,
    deadline_slack_p10_seconds=11.0,
    provider=calls(120, status_5xx=10),
    ready=240,
    running=6,
    worker_inflight=6,
    gate=gate(drain_state="drain", admission_ratio=0.0, reason="provider_or_queue_age").gate,
)


def with_fix(**fix: str) -> Settings:
    body = SETTINGS.model_dump(mode="json")
    body["automation"]["fix"].update(fix)
    return parse(body, "the test")


def rules(planned: Plan) -> list[str]:
    return [obstacle.rule for obstacle in planned.why_not]


def texts(planned: Plan) -> list[str]:
    return [line.text for line in planned.lines]


@pytest.mark.parametrize("name", library.builtin_names())
def test_the_plan_reads_as_it_always_did(name: str) -> None:
    asked = Asked("", {"lint-fix": 31, "test-patch": 2}, 2)
    planned = plan(library.load_builtin(name), ILL, SETTINGS, heard=Heard(asked, QUIET))
    # The contract's fingerprint moves with every new setting; the lines are what this is about.
    text = plan_text(planned).replace(SETTINGS.contract.digest(), "CONTRACT")
    assert text + "\n" == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_lines_do_not_depend_on_figures_that_change() -> None:
    for telemetry in (HEALTHY, ILL, gate(pin="operator", green=True), gate(run=live("drain-and-recover"))):
        assert texts(plan(RECOVER, telemetry, SETTINGS)) == texts(plan(RECOVER, HEALTHY, SETTINGS))
        rollbacks = [line.rollback for line in plan(RECOVER, telemetry, SETTINGS).lines]
        assert rollbacks == [line.rollback for line in plan(RECOVER, HEALTHY, SETTINGS).lines]


def test_lines_of_a_run_differ_from_the_plan_in_the_run_id_alone() -> None:
    planned, ran = plan(RECOVER, HEALTHY, SETTINGS), plan(RECOVER, ILL, SETTINGS, run_id="r-20240101-1")
    assert texts(planned) != texts(ran)
    assert [text.replace("{run}", "r-20240101-1") for text in texts(planned)] == texts(ran)


def test_lines_follow_the_settings() -> None:
    quick = texts(plan(RECOVER, HEALTHY, faster(SETTINGS, 5)))
    assert "at most 24s, then roll back (canary_failed)" in quick[5]
    assert "4s each" in quick[7]


def test_lines_name_the_keys_of_their_own_queue() -> None:
    settings = SETTINGS.model_copy(update={"queue": "agents"})
    assert "{agents}:drain_state" in texts(plan(RECOVER, HEALTHY, settings))[0]


def test_an_ill_queue_would_start_a_run() -> None:
    planned = plan(RECOVER, ILL, SETTINGS)
    assert planned.would_start
    assert planned.why_not == ()
    assert planned.unseen == ("cooldown", "runs an hour", "the kill switch of all queues", "breaker", "runs at once")
    assert f"not seen by this user: {', '.join(planned.unseen)}" in plan_text(planned)


@pytest.mark.parametrize(
    ("telemetry", "rule"),
    [
        (HEALTHY, "not_confirmed"),
        (reading(provider=calls(3)), "not_confirmed"),
        (replace(ILL, gate=gate(pin="rolled_back", pin_note="canary_failed").gate), "pinned"),
        (replace(ILL, gate=gate(run=live("drain-and-recover")).gate), "run_live"),
        (replace(ILL, kill_switch="ada: maintenance"), "kill_switch"),
        (replace(ILL, gate=gate(duplicates_unacknowledged=2).gate), "duplicates"),
        (replace(ILL, gate=gate(readable=False, drain_state="drain").gate), "gate_unreadable"),
        (replace(ILL, gate=gate(initialised=False, drain_state="drain").gate), "uninitialised"),
    ],
)
def test_what_stands_in_the_way_is_named_with_the_way_on(telemetry: Telemetry, rule: str) -> None:
    planned = plan(RECOVER, telemetry, SETTINGS)
    assert not planned.would_start
    assert rules(planned) == [rule]
    assert planned.why_not[0].unblock.startswith("sluicegate ")


def test_a_queue_that_was_never_opened_is_told_that_alone() -> None:
    empty = gate(
        readable=False, initialised=False, drain_state="drain", pin="uninitialised", duplicates_unacknowledged=1
    )
    (obstacle,) = plan(RECOVER, empty, SETTINGS).why_not
    assert obstacle.unblock == "sluicegate queue init --settings FILE --as NAME --reason WHY"


def test_a_drain_of_the_library_confirms_by_itself() -> None:
    assert plan(RECOVER, gate(drain_state="drain"), SETTINGS).would_start


def test_a_pin_does_not_hold_the_audit_up_and_it_outranks_a_recovery() -> None:
    duplicates = gate(
        drain_state="drain", pin="rolled_back", duplicates_unacknowledged=1, run=live("drain-and-recover")
    )
    assert plan(AUDIT, duplicates, SETTINGS).would_start
    assert rules(plan(AUDIT, gate(duplicates_unacknowledged=1, run=live("rollback-and-audit")), SETTINGS)) == [
        "run_live"
    ]
    assert rules(plan(AUDIT, gate(pin="control_data_lost", duplicates_unacknowledged=1), SETTINGS)) == ["pinned"]
    assert rules(plan(AUDIT, HEALTHY, SETTINGS)) == ["not_confirmed"]


def test_the_burn_down_is_set_against_capacity() -> None:
    (check,) = plan(RECOVER, ILL, SETTINGS).lines[6].gate
    assert check.value == pytest.approx(246 / 6)
    assert check.verdict == "pass"


def test_classes_without_a_canary_are_named() -> None:
    body = SETTINGS.model_dump(mode="json")
    body["contract"]["classes"]["test-patch"]["canary"] = None
    settings = parse(body, "the test")
    planned = plan(RECOVER, replace(ILL, settings_digest=settings.contract.digest()), settings)
    assert planned.notes == ("Classes without a canary, which no canary proves: test-patch.",)


def test_without_any_canary_a_person_passes_the_step() -> None:
    body = SETTINGS.model_dump(mode="json")
    for declared in body["contract"]["classes"].values():
        declared["canary"] = None
    planned = plan(RECOVER, HEALTHY, parse(body, "the test"))
    assert "no class declares a canary: a named person passes this step" in planned.lines[5].text
    assert "with less than 15s (15s + 0s to green)" in planned.lines[2].text


def test_another_contract_in_force_is_told() -> None:
    (note,) = plan(RECOVER, replace(ILL, settings_digest="0123456789abcdef"), SETTINGS).notes
    assert "contract 0123456789abcdef" in note
    assert "`sluicegate queue apply --settings FILE --as NAME --reason WHY`" in note


def test_without_a_settings_file_a_plan_is_compared_with_nothing_and_says_whose_it_is() -> None:
    (note,) = plan(RECOVER, replace(ILL, settings_digest="0123456789abcdef"), SETTINGS, own_file=False).notes
    assert "0123456789abcdef" not in note
    assert "the drill's settings" in note
    assert "`--settings FILE` plans by yours" in note


def test_a_hook_is_shown_with_its_secrets_masked() -> None:
    settings = with_fix(
        hook_url="https://bot:hunter2@ops.example:8443/fix/T0123456789ABCDEFGHIJKLM?token=s3cret&dry=1",
        probe_url="http://127.0.0.1:8080/health?key=s3cret",
    )
    line = plan(RECOVER, HEALTHY, settings).lines[3]
    assert line.text.startswith(
        "POST https://***@ops.example:8443/fix/***?token=***&dry=*** with Idempotency-Key {run}/fix; "
        "a lost outcome is probed; wait until GET http://127.0.0.1:8080/health?key=*** answers 2xx; or a named person"
    )
    shown = json.dumps(plan_values(plan(RECOVER, HEALTHY, settings)))
    assert not [secret for secret in ("hunter2", "s3cret", "T0123456789ABCDEFGHIJKLM") if secret in shown]


@pytest.mark.parametrize(
    ("fix", "by"),
    [
        ({}, FixBy.PERSON),
        ({"probe_url": "http://127.0.0.1/health"}, FixBy.PROBE),
        ({"hook_url": "http://127.0.0.1/fix"}, FixBy.HOOK),
    ],
)
def test_the_settings_say_who_fixes(fix: dict[str, str], by: FixBy) -> None:
    params = RECOVER.steps[3].params
    assert isinstance(params, Fix)
    assert params.by(Context(with_fix(**fix))) is by


def test_a_plan_has_one_line_a_step_and_can_be_printed_as_json() -> None:
    values = plan_values(plan(RECOVER, ILL, SETTINGS))
    lines = json.loads(json.dumps(values))["lines"]
    assert [line["seq"] for line in lines] == list(range(1, 9))
    assert lines[7]["verdict"] == "fail"
    assert lines[0]["verdict"] is None
    assert lines[2]["figures"]["unfinished"] == 246


@pytest.mark.parametrize("rule", ["cooldown", "runs_per_hour"])
def test_what_the_queue_forbids_is_named_and_no_longer_unseen(rule: str) -> None:
    planned = plan(RECOVER, ILL, SETTINGS, heard=Heard(Asked(rule, {})))
    assert rules(planned) == [rule]
    assert planned.unseen == ("the kill switch of all queues", "breaker", "runs at once")


ON = Ordered(1_700_000_000_000, "ada: maintenance")
LIVE = (Holder("mill", "r1", 0), Holder("press", "r2", 0))


@pytest.mark.parametrize(
    ("standing", "recovers", "prepares"),
    [
        (QUIET, [], []),
        (replace(QUIET, kill=ON), ["kill_switch_of_all_queues"], ["kill_switch_of_all_queues"]),
        (replace(QUIET, breaker=ON), ["breaker"], ["breaker"]),
        (replace(QUIET, kill=ON, breaker=ON), ["kill_switch_of_all_queues"], ["kill_switch_of_all_queues"]),
        (replace(QUIET, holders=LIVE), ["concurrent_runs"], []),
        (replace(QUIET, holders=(LIVE[0], Holder("default", "r3", 0))), [], []),
    ],
)
def test_what_holds_over_all_queues_is_named_and_no_longer_unseen(
    standing: Standing, recovers: list[str], prepares: list[str]
) -> None:
    for book, found in ((RECOVER, recovers), (library.load_builtin("reject-and-prepare"), prepares)):
        planned = plan(book, ILL, SETTINGS, heard=Heard(Asked("", {}, 2), standing))
        assert rules(planned) == found
        assert planned.unseen == ()
        assert all(one.unblock.startswith("sluicegate automation ") for one in planned.why_not)
    assert "not seen" not in plan_text(plan(RECOVER, ILL, SETTINGS, heard=Heard(Asked("", {}, 2), standing)))
    duplicates = gate(duplicates_unacknowledged=1)
    assert plan(AUDIT, duplicates, SETTINGS, heard=Heard(Asked("", {}, 2), standing)).would_start


@pytest.mark.parametrize(
    ("telemetry", "found"),
    [
        (ILL, []),
        (replace(ILL, gate=gate(run=live("drain-and-recover")).gate), []),
        (replace(ILL, gate=gate(besides=(live("hold-recovery"),)).gate), []),
        (replace(ILL, gate=gate(besides=(live("reject-and-prepare"),)).gate), ["run_live"]),
        (replace(ILL, gate=gate(duplicates_unacknowledged=2).gate), []),
        (replace(ILL, gate=gate(pin="operator").gate), ["pinned"]),
        (replace(ILL, kill_switch="ada: maintenance"), ["kill_switch"]),
        (HEALTHY, ["not_confirmed"]),
        (gate(drain_state="drain"), ["not_confirmed"]),
    ],
)
def test_a_run_without_the_lock_is_held_up_by_its_own_kind_a_pin_and_the_kill_switch(
    telemetry: Telemetry, found: list[str]
) -> None:
    assert rules(plan(library.load_builtin("reject-and-prepare"), telemetry, SETTINGS)) == found
