"""Do settings come from one file and the environment, with every bad value named, and one digest for one content?"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import SettingsError, UsageError
from sluicegate.policy import Thresholds
from sluicegate.settings import DRILL_CLASSES, Contract, Settings, default_settings, faster, load, parse


def contract(**fields: Any) -> Contract:
    return parse({"contract": {"classes": DRILL_CLASSES, **fields}}, "the test").contract


def written(folder: Path, text: str) -> Path:
    path = folder / "sluicegate.yaml"
    path.write_text(text, encoding="utf-8")
    return path


# --- where settings come from --------------------------------------------------------------------------------------


def test_without_a_file_the_drills_classes_and_every_default_hold() -> None:
    settings = load(None, {})
    assert settings == default_settings()
    deadlines = {name: declared.deadline_s for name, declared in settings.contract.classes.items()}
    assert deadlines == {"lint-fix": 60, "test-patch": 180, "refactor-plan": 900}
    assert settings.contract.thresholds == Thresholds()
    assert (settings.contract.retry_budget, settings.contract.lease_ms) == (5, 30_000)
    assert (settings.worker.max_inflight, settings.worker.sweep_ms) == (2, 250)


def test_a_file_is_read_and_the_environment_goes_over_it(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "queue: repairs\n"
        "worker: {max_inflight: 4, sweep_ms: 100}\n"
        "contract:\n"
        "  classes: {repair: {deadline_s: 30, effects: unsafe, cost_class: browser}}\n"
        "  cost_classes: {browser: {max_running: 1}}\n"
        "  thresholds: {reject_age_p95_seconds: 21}\n",
    )
    settings = load(path, {"WORKER_MAX_INFLIGHT": "8"})
    assert (settings.queue, settings.worker.max_inflight, settings.worker.sweep_ms) == ("repairs", 8, 100)
    assert settings.contract.classes["repair"].effects == "unsafe"
    assert settings.contract.thresholds.reject_age_p95_seconds == 21
    assert settings.contract.thresholds.drain_age_p95_seconds == 25


@pytest.mark.parametrize(
    ("name", "text", "where", "value"),
    [
        ("REDIS_URL", "redis://10.0.0.7:6390/3", "redis_url", "redis://10.0.0.7:6390/3"),
        ("PROVIDER_URL", "http://10.0.0.8:9", "provider_url", "http://10.0.0.8:9"),
        ("SLUICEGATE_QUEUE", "repairs", "queue", "repairs"),
        ("WORKER_MAX_INFLIGHT", "5", "worker.max_inflight", 5),
        ("DEADLINE_SWEEP_MS", "125", "worker.sweep_ms", 125),
        ("ADMIT_QUEUE_AGE_P95_MAX_S", "18.5", "contract.thresholds.reject_age_p95_seconds", 18.5),
        ("DRAIN_PROVIDER_5XX_RATE", "0.2", "contract.thresholds.drain_provider_5xx_rate", 0.2),
        ("DRAIN_QUEUE_AGE_P95_S", "40", "contract.thresholds.drain_age_p95_seconds", 40),
        ("CANARY_REQUIRED_OK", "6", "contract.canary_required_ok", 6),
    ],
)
def test_each_environment_name_lands_in_its_setting(name: str, text: str, where: str, value: object) -> None:
    found: Any = load(None, {name: text})
    for part in where.split("."):
        found = getattr(found, part)
    assert found == value


def test_a_path_may_be_text(tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text("queue: mill\ncontract: {classes: {a: {deadline_s: 60}}}\n")
    assert load(str(tmp_path / "q.yaml"), {}).queue == "mill"


def test_an_empty_variable_is_none() -> None:
    assert load(None, {"WORKER_MAX_INFLIGHT": "", "REDIS_URL": ""}) == default_settings()


def test_loading_leaves_the_drills_classes_as_they_were() -> None:
    before = json.dumps(DRILL_CLASSES)
    load(None, {"CANARY_REQUIRED_OK": "9", "DRAIN_QUEUE_AGE_P95_S": "40"})
    assert json.dumps(DRILL_CLASSES) == before
    assert load(None, {}) == default_settings()


def test_an_empty_section_takes_the_environment(tmp_path: Path) -> None:
    path = written(tmp_path, "contract: {classes: {a: {deadline_s: 9}}, thresholds: }\n")
    assert load(path, {"DRAIN_QUEUE_AGE_P95_S": "40"}).contract.thresholds.drain_age_p95_seconds == 40


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "bound"),
    [
        ({"max_running": 0}, "contract.max_running 0", "greater than or equal to 1"),
        ({"max_pending": 0}, "contract.max_pending 0", "greater than or equal to 1"),
        ({"lease_ms": 99}, "contract.lease_ms 99", "greater than or equal to 100"),
        ({"retry_budget": 0}, "contract.retry_budget 0", "greater than or equal to 1"),
        ({"expected_service_s": 0}, "contract.expected_service_s 0", "greater than 0"),
        ({"burn_down_min_backlog_fall": 1}, "contract.burn_down_min_backlog_fall 1", "less than 1"),
        ({"timings": {"tick_s": -1}}, "contract.timings.tick_s -1", "greater than 0"),
        ({"timings": {"margin_s": float("inf")}}, "contract.timings.margin_s inf", "finite"),
        ({"timings": {"reject_dwell": 3}}, "contract.timings.reject_dwell 3", "there is no setting of this name"),
        ({"classes": {}}, "contract.classes", "at least 1 item"),
        ({"classes": {"a": {}}}, "contract.classes.a.deadline_s", "it must be given"),
        ({"classes": {"a": {"deadline_s": 2}}}, "deadline_s of class 'a' is 2", "above the margin_s of 2"),
        ({"classes": {"a": {"deadline_s": 9, "effects": "some"}}}, "effects 'some'", "'none', 'keyed' or 'unsafe'"),
        ({"classes": {"a": {"deadline_s": 9, "cost_class": "gpu"}}}, "cost_class 'gpu'", "not declared"),
        ({"classes": {"Lint Fix": {"deadline_s": 9}}}, "class 'Lint Fix'", "must match"),
        ({"classes": {"lint\n": {"deadline_s": 9}}}, r"class 'lint\n'", "must match"),
        ({"classes": {"canary": {"deadline_s": 9}}}, "'canary'", "reserved"),
        ({"classes": {"other": {"deadline_s": 9}}}, "'other'", "reserved"),
        ({"cost_classes": {"-": {}}}, "class '-'", "must match"),
        ({"ramp_percents": [10, 50]}, "ramp_percents", "end at 100"),
        ({"ramp_percents": []}, "ramp_percents", "end at 100"),
        ({"ramp_percents": [50, 10, 100]}, "ramp_percents", "must grow"),
        ({"ramp_percents": [0, 100]}, "ramp_percents", "1 or more"),
        ({"ramp_percents": [*range(1, 11), 100]}, "ramp_percents has 11 steps", "not at most 10"),
        ({"thresholds": {"reject_age": 3}}, "contract.thresholds.reject_age 3", "Unexpected"),
        ({"thresholds": {"drain_age_p95_seconds": 20}}, "ages must grow", "not 15, 20, 20"),
        ({"thresholds": {"recovered_age_p95_seconds": 0}}, "ages must grow from above 0", "not 0, 20, 25"),
        ({"thresholds": {"reject_slack_p10_seconds": 15}}, "reject_slack_p10_seconds is 15", "recovered_slack"),
        ({"thresholds": {"drain_provider_5xx_rate": 5}}, "drain_provider_5xx_rate is 5", "at most 1"),
        ({"thresholds": {"drain_provider_timeout_rate": 0}}, "drain_provider_timeout_rate is 0", "above 0"),
        ({"thresholds": {"drain_min_failed": 0}}, "drain_min_failed is 0", "at least 1"),
        ({"thresholds": {"drain_age_p95_seconds": float("nan")}}, "drain_age_p95_seconds nan", "finite"),
        ({"timings": {"run_cooldown_s": 0.0004}}, "run_cooldown_s is 0.0004 s", "from 1 ms to 10 years"),
        ({"timings": {"provider_window_s": 1e-9}}, "provider_window_s is 1e-09 s", "from 1 ms to 10 years"),
        ({"timings": {"tick_s": 1e9}}, "tick_s is 1e+09 s", "from 1 ms to 10 years"),
        ({"classes": {"a": {"deadline_s": 1e300}}}, "deadline_s of class 'a' is 1e+300 s", "from 1 ms to 10 years"),
        ({"lease_ms": 10**12}, "lease_ms is 1e+09 s", "from 1 ms to 10 years"),
        ({"thresholds": {"drain_age_p95_seconds": 1e307}}, "thresholds.drain_age_p95_seconds is 1e+307", "than 1e+12"),
        ({"thresholds": {"drain_min_failed": 10**30}}, "thresholds.drain_min_failed is 1e+30", "more than 1e+12"),
        ({"thresholds": {"recovered_slack_p10_seconds": 2e12}}, "recovered_slack_p10_seconds is 2e+12", "than 1e+12"),
        ({"thresholds": {"sample_min_calls": float("1e400")}}, "sample_min_calls inf", "finite number"),
        ({"max_running": 10**18}, "max_running is 1e+18", "more than 1e+12"),
        ({"max_running": 10**400}, "max_running is 1e+308", "more than 1e+12"),
        (
            {"classes": {"a": {"deadline_s": 9, "canary": {"on": date(2026, 3, 1)}}}},
            "canary",
            "no JSON: Object of type",
        ),
        ({"classes": {"a": {"deadline_s": 9, "canary": {"x": float("nan")}}}}, "canary", "no JSON: Out of range"),
        ({"classes": {"a": {"deadline_s": 9, "canary": {"x": "y" * 262_144}}}}, "canary", "more than 262144"),
        ({"classes": {"a": {"deadline_s": 9, "share": 1e300}}}, "classes.a.share is 1e+300", "more than 1e+12"),
        ({"cost_classes": {"gpu": {"max_running": 10**13}}}, "cost_classes.gpu.max_running is 1e+13", "than 1e+12"),
        ({"thresholds": {"sample_min_calls": True}}, "sample_min_calls is true", "no number"),
        ({"thresholds": {"reject_slack_p10_seconds": False}}, "reject_slack_p10_seconds is false", "no number"),
        ({"timings": {"tick_s": True}}, "tick_s is true", "no number"),
        ({"max_pending": True}, "max_pending is true", "no number"),
        ({"classes": {"a" * 65: {"deadline_s": 9}}}, "has 65 characters", "more than 64"),
        ({"cost_classes": {"a" * 65: {}}}, "has 65 characters", "more than 64"),
        ({"classes": {"a": {"deadline_s": True}}}, "deadline_s is true", "no number"),
    ],
)
def test_a_bad_value_is_named_with_its_bound(fields: dict[str, Any], field: str, bound: str) -> None:
    with pytest.raises(SettingsError) as refused:
        contract(**fields)
    assert refused.value.message.startswith("the test: contract")
    assert field in refused.value.message
    assert bound in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("environment", "start", "bound"),
    [
        ({"WORKER_MAX_INFLIGHT": "0"}, "WORKER_MAX_INFLIGHT: worker.max_inflight '0'", "greater than or equal to 1"),
        ({"WORKER_MAX_INFLIGHT": "two"}, "WORKER_MAX_INFLIGHT: worker.max_inflight 'two'", "valid integer"),
        ({"WORKER_MAX_INFLIGHT": "10001"}, "WORKER_MAX_INFLIGHT: worker.max_inflight '10001'", "equal to 10000"),
        ({"DEADLINE_SWEEP_MS": "3600001"}, "DEADLINE_SWEEP_MS: worker.sweep_ms '3600001'", "equal to 3600000"),
        ({"DEADLINE_SWEEP_MS": "9"}, "DEADLINE_SWEEP_MS: worker.sweep_ms '9'", "greater than or equal to 10"),
        ({"CANARY_REQUIRED_OK": "0"}, "CANARY_REQUIRED_OK: contract.canary_required_ok '0'", "equal to 1"),
        ({"DRAIN_PROVIDER_5XX_RATE": "5%"}, "DRAIN_PROVIDER_5XX_RATE: contract.thresholds", "valid number"),
        ({"DRAIN_QUEUE_AGE_P95_S": "10"}, "DRAIN_QUEUE_AGE_P95_S: contract", "not 15, 20, 10"),
        ({"SLUICEGATE_QUEUE": "My Queue"}, "SLUICEGATE_QUEUE: queue 'My Queue'", "pattern"),
    ],
)
def test_a_bad_variable_is_named(environment: dict[str, str], start: str, bound: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(None, environment)
    assert refused.value.message.startswith(start)
    assert bound in refused.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("- a\n", "must hold a mapping, not list"),
        ("a: [\n", "is not valid YAML"),
        ("contract: {classes: {a: {deadline_s: 9}, a: {deadline_s: 8}}}\n", "is not valid YAML"),
        ("queue: x\n", "contract is not valid: it must be given"),
        (
            "contract: {backlog_limt: 0.7, classes: {a: {deadline_s: 9}}}\n",
            "0.7 is not valid: there is no setting of this",
        ),
        ("contract:\n", "contract is not valid"),
        ("contract: 3\n", "contract 3 is not valid"),
        ("worker: 3\ncontract: {classes: {a: {deadline_s: 9}}}\n", "worker 3 is not valid"),
        ("speed: 3\ncontract: {classes: {a: {deadline_s: 9}}}\n", "speed 3 is not valid"),
    ],
)
@pytest.mark.parametrize("environment", [{}, {"WORKER_MAX_INFLIGHT": "3"}], ids=["alone", "with-a-variable"])
def test_a_bad_file_is_named(text: str, message: str, environment: dict[str, str], tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SettingsError) as refused:
        load(path, environment)
    assert str(path) in refused.value.message
    assert message in refused.value.message


_ALIASES = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a: " + "{a: " * 5000 + "}" * 5000, "nested too deeply"),
        ("a0: &a0 [x]\n" + _ALIASES, "more than 100000 values"),
        ("a: &a [*a]\n", "more than 100000 values"),
        ("contract: {classes: {a: {deadline_s: 9, canary: &a {b: *a}}}}\n", "more than 100000 values"),
        ("a: 2020-13-45\n", "is not valid YAML"),
    ],
    ids=["deep-list", "deep-mapping", "aliases-of-aliases", "a-list-in-itself", "a-canary-in-itself", "no-such-day"],
)
def test_a_file_that_stands_for_more_than_settings_is_named_at_once(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SettingsError, match=message) as refused:
        load(path, {})
    assert str(path) in refused.value.message


def test_a_file_that_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.yaml cannot be read: No such file"):
        load(tmp_path / "missing.yaml", {})
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not valid YAML"):
        load(binary, {})


def test_an_error_repeats_no_secret() -> None:
    body = {"contract": {"classes": DRILL_CLASSES}, "automation": {"token": 271828}}
    with pytest.raises(SettingsError) as refused:
        parse(body, "the test")
    assert "automation.token" in refused.value.message
    assert "271828" not in str(refused.value)


def test_settings_are_values_that_nobody_changes() -> None:
    settings = default_settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.contract.max_running = 99  # type: ignore[misc]


# --- what follows from the contract --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 180),  # 6 ÷ 1 s × 60 s ÷ 2
        ({"max_running": 7, "expected_service_s": 2}, 105),
        ({"max_running": 1, "expected_service_s": 7}, 4),  # 4.28…: whole jobs, rounded down
        ({"max_running": 1, "expected_service_s": 1000}, 1),  # never less than one
        ({"max_running": 1000}, 10_000),
        ({"max_running": 1000, "max_pending": 25_000}, 25_000),
        ({"max_pending": 3}, 3),
    ],
)
def test_max_pending_defaults_to_capacity_by_half_the_shortest_deadline(fields: dict[str, Any], expected: int) -> None:
    assert contract(**fields).effective_max_pending == expected


@pytest.mark.parametrize(
    ("required_ok", "with_canary", "expected"), [(3, 3, 3), (2, 3, 3), (5, 3, 5), (3, 1, 3), (1, 0, 1)]
)
def test_canaries_required_covers_every_class_that_declares_one(
    required_ok: int, with_canary: int, expected: int
) -> None:
    classes = {f"c{n}": {"deadline_s": 60, "canary": {"n": n} if n < with_canary else None} for n in range(3)}
    built = contract(classes=classes, canary_required_ok=required_ok)
    assert built.canaries_required == expected
    assert len(built.canary_classes) == with_canary


@pytest.mark.parametrize(("deadline_s", "latency_s"), [(60, 2), (30, 1), (29, 1), (300, 10), (900, 10), (3, 1)])
def test_a_canary_must_answer_within_a_30th_of_its_deadline(deadline_s: float, latency_s: float) -> None:
    """At least 1 s, at most the call's timeout."""
    assert contract(classes={"a": {"deadline_s": deadline_s}}).canary_max_latency_s("a") == pytest.approx(latency_s)


def test_the_contract_for_redis_is_in_whole_milliseconds() -> None:
    body = json.loads(default_settings().contract.for_redis())
    assert body["timings"]["tick_ms"] == 500
    assert body["timings"]["failed_retention_ms"] == 30 * 86_400_000
    assert body["classes"]["lint-fix"]["deadline_ms"] == 60_000
    assert body["max_pending"] == 180
    assert all(isinstance(value, int) for value in body["timings"].values())


# --- the digest ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"max_running": 7},
        {"max_pending": 181},
        {"lease_ms": 30_001},
        {"retry_budget": 6},
        {"loss_budget": 3},
        {"expected_service_s": 1.5, "max_pending": 180},
        {"strict_classes": False},
        {"classes": {**DRILL_CLASSES, "extra": {"deadline_s": 60}}},
        {
            "classes": {
                **DRILL_CLASSES,
                "lint-fix": {**DRILL_CLASSES["lint-fix"], "deadline_s": 61},
            },
            "max_pending": 180,
        },
        {"classes": {**DRILL_CLASSES, "lint-fix": {**DRILL_CLASSES["lint-fix"], "effects": "none"}}},
        {"classes": {**DRILL_CLASSES, "lint-fix": {**DRILL_CLASSES["lint-fix"], "canary": {"prompt": "another"}}}},
        {"cost_classes": {"browser": {"max_running": 1}}},
        {"thresholds": {"drain_min_failed": 3}},
        {"timings": {"tick_s": 0.25}},
        {"canary_required_ok": 4},
        {"canary_failures_max": 4},
        {"burn_down_min_age_fall_s": 2},
        {"burn_down_min_backlog_fall": 0.2},
        {"ramp_percents": [50, 100]},
        {"prediction_min_completions": 21},
        {"runs_per_hour": 4},
        {"concurrent_runs": 4},
        {"storm_queues": 4},
        {"dispatch": "edf"},
        {"backlog_limit": 0.7},
        {"classes": {**DRILL_CLASSES, "lint-fix": {**DRILL_CLASSES["lint-fix"], "share": 14}}},
    ],
    ids=str,
)
def test_the_digest_changes_with_every_part_of_the_contract(fields: dict[str, Any]) -> None:
    assert contract(**fields).digest() != default_settings().contract.digest()


def test_every_field_of_the_contract_is_covered_by_the_digest_test() -> None:
    """A new field must reach the digest, or two clients would decide by different values unseen."""
    mark = test_the_digest_changes_with_every_part_of_the_contract.pytestmark[0]
    assert {name for fields in mark.args[1] for name in fields} == set(Contract.model_fields)


def test_the_digest_stays_with_the_content() -> None:
    """Neither the order of the keys, nor numbers written another way, nor anything outside the contract changes it."""
    classes = {name: dict(reversed(list(declared.items()))) for name, declared in reversed(list(DRILL_CLASSES.items()))}
    body = {"worker": {"max_inflight": 9}, "contract": {"retry_budget": 5, "classes": classes, "max_pending": 180}}
    assert parse(body, "the test").contract.digest() == default_settings().contract.digest()
    assert (
        contract(classes={"a": {"deadline_s": 60}}).digest() == contract(classes={"a": {"deadline_s": 60.0}}).digest()
    )
    assert len(default_settings().contract.digest()) == 16


# --- faster profiles -----------------------------------------------------------------------------------------------


def flat(body: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Give every leaf of a nested mapping under its dotted name."""
    leaves: dict[str, Any] = {}
    for key, value in body.items():
        name = f"{prefix}{key}"
        leaves |= flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return leaves


def test_faster_divides_every_duration_and_leaves_counts_the_tick_and_the_floor_alone() -> None:
    """The fast profile: every duration ÷ 5 but the tick and the canary floor; counts and ratios stay."""
    before = flat(default_settings().contract.model_dump(mode="json"))
    after = flat(faster(default_settings(), 5).contract.model_dump(mode="json"))
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    durations = {name for name in before if name.endswith(("_s", "_ms", "_seconds")) and before[name] is not None}
    assert changed == durations - {"timings.tick_s", "timings.canary_latency_floor_s"}
    assert all(after[name] == pytest.approx(before[name] / 5) for name in changed)


def test_faster_leaves_everything_outside_the_contract_alone() -> None:
    settings = default_settings()
    fast = faster(settings, 5)
    outside = set(Settings.model_fields) - {"contract"}
    assert all(getattr(fast, name) == getattr(settings, name) for name in outside)
    assert fast.contract.effective_max_pending == settings.contract.effective_max_pending
    assert fast.contract.canaries_required == settings.contract.canaries_required
    assert fast.contract.digest() != settings.contract.digest()


def test_faster_reads_no_canary_payload_as_a_duration() -> None:
    classes = {"a": {"deadline_s": 60, "canary": {"wait_s": 10, "inner": {"timeout_ms": 50}}}}
    settings = parse({"contract": {"classes": classes}}, "the test")
    assert faster(settings, 5).contract.classes["a"].canary == {"wait_s": 10, "inner": {"timeout_ms": 50}}


@given(st.floats(1, 20))
def test_a_faster_contract_is_valid_and_keeps_its_shape(factor: float) -> None:
    """Whatever the factor, the bounds keep their order and the limits their size."""
    fast = faster(default_settings(), factor).contract
    assert fast.shortest_deadline_s == pytest.approx(60 / factor)
    assert fast.effective_max_pending in (179, 180)
    assert fast.thresholds.recovered_age_p95_seconds < fast.thresholds.reject_age_p95_seconds
    assert fast.thresholds.drain_provider_5xx_rate == 0.05


def test_faster_by_one_changes_nothing() -> None:
    assert faster(default_settings(), 1) == default_settings()


def test_the_port_of_the_environment_is_that_of_whichever_service_the_process_is() -> None:
    loaded = load(None, {"PORT": "9555"})
    assert (loaded.exporter.port, loaded.automation.port) == (9555, 9555)


@pytest.mark.parametrize(
    ("least", "most"),
    [
        ("call_timeout_min_s", "call_timeout_max_s"),
        ("backoff_first_s", "backoff_max_s"),
        ("reject_dwell_s", "reject_dwell_max_s"),
        ("tick_s", "controller_silent_s"),
    ],
)
def test_a_least_above_its_most_is_refused(least: str, most: str) -> None:
    body = {"contract": {"classes": {"a": {"deadline_s": 60}}, "timings": {least: 9.0, most: 8.0}}}
    with pytest.raises(SettingsError, match=f"{least} is 9, above {most} of 8"):
        parse(body, "a file")


def test_the_least_share_is_one(tmp_path: Path) -> None:
    uneven = contract(classes={"a": {"deadline_s": 9, "share": 1e-9}, "b": {"deadline_s": 9}})
    assert {name: one["share"] for name, one in json.loads(uneven.for_redis())["classes"].items()} == {
        "a": 1e-6,
        "b": 1,
    }


def test_what_an_alias_repeats_and_what_a_merge_beats_is_no_key_twice(tmp_path: Path) -> None:
    text = """
        contract:
          classes:
            a: &usual {deadline_s: 9, share: 2}
            b: &longer {<<: *usual, deadline_s: 90}
            c: {<<: *longer, share: 1}
            d: *longer
    """
    classes = load(written(tmp_path, text), {}).contract.classes
    assert [(name, one.deadline_s, one.share) for name, one in classes.items()] == [
        ("a", 9, 2),
        ("b", 90, 2),
        ("c", 90, 1),
        ("d", 90, 2),
    ]
