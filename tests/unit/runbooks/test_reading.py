"""A runbook file is read into types at the edge; what is wrong with it is said by file, field, value and bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runbooks import library
from runbooks.document import LARGEST_BYTES, parse_document, schema
from runbooks.model import NotifyWhen, OnTimeout, RunCause
from runbooks.rehearsal_model import When
from runbooks.values import sample
from runbooks.verbs.drain import Drain
from runbooks.verbs.fix import Fix
from runbooks.verbs.registry import VERBS
from runbooks.verbs.reopen import Reopen
from runbooks.verbs.step import OnUnknown, VerbName
from sluicegate.errors import SettingsError, UsageError
from sluicegate.gate import RollbackReason
from sluicegate.gate import Runbook as LockHolder
from tests.unit.runbooks.files import changed, read, shipped, step


def test_the_lock_holding_runbooks_are_shipped_and_sound() -> None:
    assert set(library.builtin_names()) >= {name.value for name in LockHolder}
    for name in library.builtin_names():
        assert library.load_builtin(name).name == name


def test_drain_and_recover_is_read_into_types() -> None:
    runbook = library.load_builtin("drain-and-recover")
    assert [one.verb for one in runbook.steps] == [
        "freeze",
        "snapshot",
        "drain",
        "fix",
        "recover",
        "canary",
        "burn_down",
        "reopen",
    ]
    assert all(one.on_timeout is OnTimeout.ROLLBACK for one in runbook.steps)
    drain, reopen = runbook.steps[2].params, runbook.steps[7].params
    assert isinstance(drain, Drain)
    assert isinstance(reopen, Reopen)
    assert drain.keep_slack_s(sample()) == 18
    assert reopen.ramp.resolve(sample()) == (10, 50, 100)
    assert set(runbook.notify.when) >= {NotifyWhen.STARTED, NotifyWhen.ROLLED_BACK}


def test_each_cause_has_its_listed_reason() -> None:
    rollback = library.load_builtin("drain-and-recover").rollback
    assert rollback is not None
    assert rollback.to == "closed"
    assert rollback.reason(VerbName.CANARY) is RollbackReason.CANARY_FAILED
    assert rollback.reason(VerbName.BURN_DOWN) is RollbackReason.QUEUE_AGE_NOT_RECOVERING
    assert rollback.reason(RunCause.BREACH) is RollbackReason.QUEUE_AGE_NOT_RECOVERING
    assert rollback.reason(RunCause.DUPLICATE) is RollbackReason.DUPLICATE_SIDE_EFFECT
    assert rollback.reason(VerbName.FIX) is RollbackReason.MANUAL_OPERATOR_HOLD
    assert set(rollback.reasons.values()) == {reason.value for reason in RollbackReason}


def test_rollback_and_audit_never_moves_the_gate() -> None:
    runbook = library.load_builtin("rollback-and-audit")
    assert [one.verb for one in runbook.steps] == [VerbName.AUDIT, VerbName.APPROVE]


def test_alerts_ask_for_a_runbook_by_their_labels() -> None:
    trigger = library.load_builtin("drain-and-recover").trigger
    assert trigger.matches({"runbook": "drain-and-recover", "queue": "agents"})
    assert not trigger.matches({"runbook": "hold-recovery"})
    assert not trigger.matches({})


def test_the_digest_is_of_what_a_run_goes_by_and_not_of_comments_or_tests() -> None:
    body = shipped("drain-and-recover")
    assert read(body).digest == library.load_builtin("drain-and-recover").digest

    def other_owner(body: dict[str, Any]) -> None:
        body["owner"] = "somebody else"

    def fewer_tests(body: dict[str, Any]) -> None:
        del body["tests"][0]

    assert changed(other_owner).digest != read(body).digest
    assert changed(fewer_tests).digest == read(body).digest
    assert changed(lambda body: body.pop("tests")).digest == read(body).digest


def test_the_schema_is_a_schema_and_knows_every_verb() -> None:
    Draft202012Validator.check_schema(dict(schema()))
    verbs = [verb.value for verb in VerbName]
    assert list(schema()["properties"]["steps"]["items"]["properties"]) == verbs
    assert schema()["$defs"]["verb"]["enum"] == verbs
    assert schema()["$defs"]["cause"]["enum"] == verbs + [cause.value for cause in RunCause]
    assert list(VERBS) == list(VerbName)


def test_tests_of_a_runbook_are_read() -> None:
    def with_test(body: dict[str, Any]) -> None:
        body["tests"] = [
            {
                "name": "no data opens nothing",
                "given": {
                    "webhook": "06.json",
                    "metrics": {"queue_age_p95_seconds": [30, 20], "provider_5xx_rate": "no_data"},
                },
                "when": {"step": "reopen", "after": "2m"},
                "then": {"state": "waiting", "admission": "closed"},
            }
        ]

    (test,) = changed(with_test).tests
    assert test.given.metrics == {"queue_age_p95_seconds": (30.0, 20.0), "provider_5xx_rate": (None,)}
    assert test.when == When("reopen", 5.0, 120.0)
    assert test.then.state == "waiting"
    assert test.then.starts is None


def _set(path: str, value: object) -> Any:
    def change(body: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        inner: Any = body
        for part in parents:
            inner = inner[int(part)] if part.isdigit() else inner[part]
        inner[last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("apiVersion", "sluicegate/v2", "apiVersion is 'sluicegate/v2', not 'sluicegate/v1'"),
        ("runbook", "Drain", "runbook is 'Drain', which does not match"),
        ("owner", "", "owner is '', outside the bound minLength 1"),
        ("max_runtime", 90, "max_runtime is 90, which is not of the type string"),
        ("max_runtime", "90", "max_runtime is '90', not a duration with a unit"),
        ("colour", "red", "colour is 'red', but no such field exists"),
        ("trigger.alerts", {}, "trigger.alerts is {}, outside the bound minProperties 1"),
        ("confirm.any", ["age >= 3s"], "confirm.any[0] is 'age >= 3s', and 'age' is not a figure"),
        ("steps.0.freeze.timeout", "60", "steps[0].freeze.timeout is '60', not a duration with a unit"),
        ("steps.0.freeze.timeout", "0s", "steps[0].freeze.timeout is '0s', not above 0s and at most 168h"),
        ("steps.0.freeze.on_timeout", "ignore", "steps[0].freeze.on_timeout is 'ignore', not one of rollback, hold"),
        ("steps.0.reboot", {}, "steps[0]"),
        ("steps.2.drain.plus", "luck", "steps[2].drain.plus is 'luck', not 'time_to_green'"),
        (
            "steps.3.fix.hook.on_unknown",
            "guess",
            "steps[3].fix.hook.on_unknown is 'guess', not one of probe, retry, hold",
        ),
        ("steps.5.canary.required", "3s", "steps[5].canary.required is '3s', not a whole number"),
        ("steps.7.reopen.ramp", "50, 10", "steps[7].reopen.ramp is '50, 10', not growing"),
        ("rollback.reasons.canary_failed", ["moon"], "rollback.reasons.canary_failed[0] is 'moon', not one of"),
        ("rollback.reasons.canary_failed", ["canary", "abort"], "which already leads to"),
        ("notify.to", ["smoke:signal"], "notify.to[0] is 'smoke:signal', which does not match"),
        ("steps", [], "steps is [], outside the bound minItems 1"),
    ],
)
def test_a_bad_value_is_named_with_file_field_value_and_bound(path: str, value: object, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        changed(_set(path, value))
    assert str(refused.value).startswith("mine.yaml: ")
    assert message in str(refused.value)


def test_a_missing_field_is_named() -> None:
    def no_owner(body: dict[str, Any]) -> None:
        del body["owner"]

    with pytest.raises(SettingsError, match="owner is missing, and it is required"):
        changed(no_owner)


def test_a_missing_timeout_is_named() -> None:
    def no_timeout(body: dict[str, Any]) -> None:
        del step(body, "canary")["timeout"]

    with pytest.raises(SettingsError, match=r"steps\[5\]\.canary\.timeout is missing, and it is required"):
        changed(no_timeout)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"a: &x 1\nb: *x\n", "aliases are not allowed"),
        (b"a: 1\na: 2\n", "stands twice"),
        (b"a: [1\n", "not plain YAML"),
        (b"a: !!python/object/apply:os.getcwd []\n", "tags are not allowed"),
        (b"\xff\xfe", "not plain YAML"),
        (b"? [a, b]\n: 1\n", "a key is not a word"),
        (b"1: 2\n", "a key is not a word"),
        (b"- 1\n", "the file is"),
        (b"", "the file is None"),
        (b"#" * (LARGEST_BYTES + 1), "larger than"),
        (b"[" * 2000, "not plain YAML"),
        (b"a: " + b"1" * 5000, "not plain YAML"),
        (b"a: 0x_", "not plain YAML"),
        (b"a: !!int word", "tags are not allowed"),
        (b"a: !!timestamp word", "tags are not allowed"),
        (b"a: !!bool word", "tags are not allowed"),
        (b"a: !!binary YQ==", "tags are not allowed"),
        (b"!!map {a: 1}", "tags are not allowed"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(text: bytes, match: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse_document(text, "mine.yaml")
    assert match in str(refused.value)


@pytest.mark.parametrize("word", ["on", "no", "yes", "off", "2024-01-01"])
def test_a_word_stays_a_word(word: str) -> None:
    text = Path(library.__file__).with_name("drain-and-recover.yaml").read_text(encoding="utf-8")
    document = parse_document(text.replace("owner: queue on-call", f"owner: {word}").encode(), "mine.yaml")
    assert document["owner"] == word


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.yaml cannot be read: No such file"):
        library.load_file(tmp_path / "gone.yaml")


def test_an_unknown_runbook_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="Did you mean `drain-and-recover`"):
        library.load_builtin("drain-and-recovery")


def test_a_folder_is_read_and_a_name_may_stand_once(tmp_path: Path) -> None:
    text = Path(library.__file__).with_name("drain-and-recover.yaml").read_text(encoding="utf-8")
    (tmp_path / "one.yaml").write_text(text, encoding="utf-8")
    assert list(library.load_folder(tmp_path)) == ["drain-and-recover"]
    (tmp_path / "two.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"two\.yaml: runbook is 'drain-and-recover', which .*one\.yaml has too"):
        library.load_folder(tmp_path)


def test_a_probe_without_an_address_leaves_a_lost_outcome_to_a_person() -> None:
    fix = library.load_builtin("drain-and-recover").steps[3].params
    assert isinstance(fix, Fix)
    assert fix.hook is not None
    assert fix.hook.on_unknown is OnUnknown.PROBE
    assert fix.on_unknown(sample()) is OnUnknown.HOLD
