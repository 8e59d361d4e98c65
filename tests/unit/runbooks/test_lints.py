"""Every lint refuses the runbook it is for; the shipped ones pass them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from runbooks import library
from runbooks.lints import LINTS, lint
from runbooks.model import Runbook
from sluicegate.errors import SettingsError
from tests.unit.runbooks.files import Change, changed, step, swapped, without


def found(runbook: Runbook) -> set[str]:
    return {finding.lint for finding in lint(runbook)}


def drain_first(body: dict[str, Any]) -> None:
    swapped(body, "freeze", "drain")


def no_freeze(body: dict[str, Any]) -> None:
    without(body, "freeze")


def recover_before_snapshot(body: dict[str, Any]) -> None:
    without(body, "snapshot")


def recover_before_drain(body: dict[str, Any]) -> None:
    swapped(body, "recover", "drain")


def canary_before_recover(body: dict[str, Any]) -> None:
    swapped(body, "recover", "canary")


def burn_down_before_canary(body: dict[str, Any]) -> None:
    swapped(body, "burn_down", "canary")


def drain_twice(body: dict[str, Any]) -> None:
    body["steps"].insert(3, {"drain": dict(step(body, "drain"))})


def fix_after_reopen(body: dict[str, Any]) -> None:
    body["steps"].append(body["steps"].pop(3))


def no_canary(body: dict[str, Any]) -> None:
    without(body, "canary")


def no_burn_down(body: dict[str, Any]) -> None:
    without(body, "burn_down")


def no_gate(body: dict[str, Any]) -> None:
    del step(body, "reopen")["gate"]


def half_a_gate(body: dict[str, Any]) -> None:
    step(body, "reopen")["gate"]["all"] = ["green", "age_recovered", "provider_within_bounds", "no_duplicates"]


def no_no_data(verb: str) -> Change:
    def change(body: dict[str, Any]) -> None:
        params = step(body, verb)
        del params.get("gate", params)["no_data"]

    return change


def no_no_data_in_confirm(body: dict[str, Any]) -> None:
    del body["confirm"]["no_data"]


def no_on_unknown(body: dict[str, Any]) -> None:
    del step(body, "fix")["hook"]["on_unknown"]


def rollback_hook_without_on_unknown(body: dict[str, Any]) -> None:
    body["rollback"]["hooks"] = [{"url": "http://127.0.0.1/recreate", "idempotency_key": "{{ run.id }}/recreate"}]


def no_probe(body: dict[str, Any]) -> None:
    del step(body, "fix")["probe"]


def rollback_opens(body: dict[str, Any]) -> None:
    body["rollback"]["to"] = "open"


def made_up_reason(body: dict[str, Any]) -> None:
    body["rollback"]["reasons"]["bad_luck"] = body["rollback"]["reasons"].pop("canary_failed")


def no_reason_for_a_step(body: dict[str, Any]) -> None:
    body["rollback"]["reasons"]["manual_operator_hold"].remove("fix")


def no_reason_for_an_abort(body: dict[str, Any]) -> None:
    body["rollback"]["reasons"]["manual_operator_hold"].remove("abort")


def short_runtime(body: dict[str, Any]) -> None:
    body["max_runtime"] = "60m"


def own(verb: str, field: str, value: str) -> Change:
    def change(body: dict[str, Any]) -> None:
        step(body, verb)[field] = value

    return change


@dataclass(frozen=True)
class On:
    """Make a change on another shipped runbook."""

    name: str
    change: Change

    def __call__(self, body: dict[str, Any]) -> None:
        self.change(body)


def with_step(verb: str, at: int = 0, params: dict[str, Any] | None = None) -> Change:
    def change(body: dict[str, Any]) -> None:
        body["steps"].insert(at, {verb: {"timeout": "30s", "on_timeout": "hold", **(params or {})}})

    return change


def with_steps(*steps: tuple[str, dict[str, Any]]) -> Change:
    def change(body: dict[str, Any]) -> None:
        for verb, params in steps:
            with_step(verb, 0, params)(body)

    return change


def with_rollback(**changes: Any) -> Change:
    def change(body: dict[str, Any]) -> None:
        body["rollback"] = {"to": "closed", "reasons": {"manual_operator_hold": ["abort"]}, **changes}

    return change


def set_in(verb: str, **changes: Any) -> Change:
    def change(body: dict[str, Any]) -> None:
        step(body, verb).update(changes)

    return change


def no_rollback(body: dict[str, Any]) -> None:
    del body["rollback"]


def no_no_data_while_a_person_thinks(body: dict[str, Any]) -> None:
    step(body, "approve")["gate"] = {"pass_if": ["worker_inflight == 0"]}


def no_reason_for_a_watched_step(body: dict[str, Any]) -> None:
    watched = {"pass_if": ["worker_inflight == 0"], "no_data": "hold"}
    with_step("wait_for", 3, watched)(body)


def without_field(params: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key != name}


PREPARE, HOLD, AUDIT = "reject-and-prepare", "hold-recovery", "rollback-and-audit"
CALL = {"url": "http://127.0.0.1/x", "idempotency_key": "{{ run.id }}/x", "on_unknown": "hold"}
PROGRAM = {"name": "restart", "on_unknown": "hold"}

CASES: list[tuple[str, Change]] = [
    ("out-of-order", drain_first),
    ("out-of-order", no_freeze),
    ("out-of-order", recover_before_snapshot),
    ("out-of-order", recover_before_drain),
    ("out-of-order", canary_before_recover),
    ("out-of-order", burn_down_before_canary),
    ("step-twice", drain_twice),
    ("step-after-reopen", fix_after_reopen),
    ("reopen-without-canary", no_canary),
    ("reopen-without-canary", no_burn_down),
    ("reopen-without-gate", no_gate),
    ("reopen-without-gate", half_a_gate),
    ("gate-without-no-data", no_no_data("canary")),
    ("gate-without-no-data", no_no_data("burn_down")),
    ("gate-without-no-data", no_no_data("reopen")),
    ("gate-without-no-data", no_no_data_in_confirm),
    ("external-without-on-unknown", no_on_unknown),
    ("external-without-on-unknown", rollback_hook_without_on_unknown),
    ("probe-missing", no_probe),
    ("gate-without-no-data", On(HOLD, lambda body: step(body, "wait_for").pop("no_data") and None)),
    ("gate-without-no-data", On(AUDIT, no_no_data_while_a_person_thinks)),
    ("external-without-on-unknown", On(PREPARE, with_step("http", 0, without_field(CALL, "on_unknown")))),
    ("external-without-on-unknown", On(PREPARE, with_step("command", 0, {"name": "restart"}))),
    ("probe-missing", On(PREPARE, with_step("http", 0, {**CALL, "on_unknown": "probe"}))),
    ("probe-missing", On(PREPARE, with_step("command", 0, {**PROGRAM, "on_unknown": "probe"}))),
    ("probe-missing", with_rollback(hooks=[{**CALL, "on_unknown": "probe"}])),
    ("key-without-run", On(PREPARE, with_step("http", 0, {**CALL, "idempotency_key": "always-the-same"}))),
    ("key-twice", On(PREPARE, with_steps(("http", CALL), ("http", CALL)))),
    ("verb-out-of-place", On(PREPARE, with_step("recover"))),
    ("verb-out-of-place", On(PREPARE, with_step("set_provider", 0, {"endpoint": "http://127.0.0.1"}))),
    ("verb-out-of-place", On(AUDIT, with_step("snapshot", 0, {"to": "x"}))),
    ("verb-out-of-place", with_step("reject", 3)),
    ("rollback-missing", no_rollback),
    ("rollback-missing", On(AUDIT, no_rollback)),
    ("rollback-beside", On(PREPARE, with_rollback())),
    ("rollback-beside", On(PREPARE, set_in("wait_for", on_timeout="rollback"))),
    ("rollback-beside", On(PREPARE, set_in("wait_for", no_data="rollback"))),
    ("end-with-lock", set_in("fix", on_timeout="end")),
    ("for-past-timeout", On(PREPARE, set_in("wait_for", timeout="10s"))),
    ("step-twice", On(PREPARE, with_step("reject"))),
    ("rollback-not-closed", rollback_opens),
    ("reason-not-listed", made_up_reason),
    ("cause-without-reason", no_reason_for_a_step),
    ("cause-without-reason", no_reason_for_an_abort),
    ("cause-without-reason", no_reason_for_a_watched_step),
    ("max-runtime-too-short", short_runtime),
    ("key-twice", with_rollback(hooks=[PROGRAM, {**PROGRAM}])),
    ("page-too-often", set_in("fix", page_every="1ms")),
    ("page-too-often", On(AUDIT, set_in("approve", page_every="9s"))),
    ("own-number", own("canary", "required", "1")),
    ("own-number", own("canary", "failures_max", "30")),
    ("own-number", own("canary", "timeout", "20m")),
    ("own-number", own("burn_down", "window", "5m")),
    ("own-number", own("burn_down", "min_age_fall", "1ms")),
    ("own-number", own("burn_down", "min_backlog_fall", "0%")),
    ("own-number", own("burn_down", "timeout", "{{ contract.timings.fix_timeout_s }}s")),
    ("own-number", own("reopen", "ramp", "100")),
    ("own-number", own("reopen", "ramp_step", "1s")),
    ("own-number", own("reopen", "timeout", "60m")),
]


@pytest.mark.parametrize(("name", "change"), CASES, ids=[f"{name}-{index}" for index, (name, _) in enumerate(CASES)])
def test_a_lint_refuses_what_it_is_for(name: str, change: Change) -> None:
    runbook = changed(change, change.name if isinstance(change, On) else "drain-and-recover")
    assert name in found(runbook)
    with pytest.raises(SettingsError):
        library.sound(runbook)


def test_what_may_be_done_again_and_what_has_its_keys_apart_is_let_through() -> None:
    other = {**CALL, "idempotency_key": "{{ run.id }}/y"}
    steps = (("http", CALL), ("http", other), ("command", PROGRAM), ("command", PROGRAM))
    assert lint(changed(with_steps(*steps), PREPARE)) == ()


def test_every_lint_has_a_case() -> None:
    assert {name for name, _ in CASES} == set(LINTS)


@pytest.mark.parametrize("name", library.builtin_names())
def test_the_shipped_runbooks_have_no_finding(name: str) -> None:
    assert lint(library.load_builtin(name)) == ()


def test_a_finding_names_file_field_lint_and_what_to_do() -> None:
    (finding,) = lint(changed(rollback_opens))
    assert str(finding) == "mine.yaml: rollback.to: a rollback would end 'open' and not 'closed' (rollback-not-closed)."
    assert finding.hint == "Write `to: closed`: only a named person opens a rolled-back gate."


def test_the_first_finding_is_raised_and_the_others_are_counted() -> None:
    def twice(body: dict[str, Any]) -> None:
        rollback_opens(body)
        short_runtime(body)

    with pytest.raises(SettingsError, match="1 more: `sluicegate runbooks validate` shows all"):
        library.sound(changed(twice))
