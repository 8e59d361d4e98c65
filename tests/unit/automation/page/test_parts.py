"""What the page's parts say of a reading, looked at as parsed HTML."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate.gate import PinReason
from sluicegate.telemetry import Part, ProviderWindow, Telemetry
from sluicegate.web.roles import Role
from tests.html_tree import Element
from tests.page_parts import entry, history, job, move, offered, reading, run_record, shown, waiting
from tests.readings import AT_MS, EMPTY, live, with_gate


def facts(gate: Element) -> dict[str, str]:
    return {row.one("dt").text: row.one("dd").text for row in gate.one("dl").children}


def card(figures: Element, name: str) -> Element:
    return figures.one("article", aria_label=name)


def test_the_gate_says_what_it_is_why_by_whom_and_what_can_be_done() -> None:
    telemetry = with_gate(
        EMPTY,
        drain_state="drain",
        reason="order_drain",
        actor="ann",
        admission_ratio=0.0,
        pin="operator",
        pin_note="looks",
    )
    gate = shown(reading(telemetry, moves=(move(note="the provider is down"),)))["gate"]
    assert gate.one("h1").text == "The gate of queue default is drain"
    assert gate.one("section").attributes["data-state"] == "drain"
    assert facts(gate) == {
        "Decision": "admit, for normal",
        "Why it is so": "order_drain: the provider is down",
        "By": "ann, since 22:12:20 UTC",
        "Pinned": "operator: looks",
        "Admitted now": "0 % of new jobs",
        "Epoch": str(AT_MS * 1000),
    }
    assert offered(gate) == ["/do/hold", "/do/reject", "/do/drain"]


def test_in_a_recovery_the_canaries_are_told_and_a_ramp_and_a_rollback_and_a_hand() -> None:
    recovering = with_gate(EMPTY, drain_state="recovering", canary_ok_count=2, rollback_reason="canary_failed")
    said = facts(shown(reading(recovering))["gate"])
    assert said["Canaries"] == "2 of 3 in a row, not green yet"
    assert said["Rolled back"] == "canary_failed"
    ramp = with_gate(EMPTY, ramp_percent=10, admission_ratio=0.1)
    assert facts(shown(reading(ramp))["gate"])["Admitted now"] == "10 % of new jobs, in a ramp at 10 %"
    by_hand = with_gate(EMPTY, drain_state="drain", raw_drain_state="drain")
    assert "drain_state drain, admission open" in facts(shown(reading(by_hand))["gate"])["Set by hand"]


def test_a_queue_that_was_never_opened_offers_no_order_and_says_how_it_is_opened() -> None:
    never = with_gate(
        EMPTY, drain_state="drain", readable=False, initialised=False, pin="uninitialised", admission_ratio=0.0
    )
    parts = shown(reading(never))
    assert offered(parts["gate"]) == []
    assert offered(parts["asked"]) == []
    assert "sluicegate queue init" in parts["asked"].text


def test_with_an_open_gate_nothing_is_asked() -> None:
    asked = shown(reading())["asked"]
    assert asked.one("p").text == "Nothing is asked of you."
    assert asked.one("section").attributes["data-urgent"] == "no"


def test_a_run_that_waits_asks_for_the_word_and_says_what_it_means() -> None:
    telemetry = with_gate(EMPTY, drain_state="drain", admission_ratio=0.0, run=live("drain-and-recover"))
    parts = shown(reading(telemetry, waiting()))
    asked = parts["asked"]
    assert "At step fix the run waits for you: approve it once the fault is gone." in asked.text
    assert asked.one("section").attributes["data-urgent"] == "yes"
    assert offered(asked) == ["/do/approve?run=run-1&step=fix", "/do/abort?run=run-1"]
    assert offered(parts["run"]) == [], "what is asked is offered once"
    stages = {
        row.one("span", class_="verb").text: row.one("span", class_="stage").text for row in parts["run"].all("li")
    }
    assert stages == {
        "1 freeze": "done",
        "2 snapshot": "done",
        "3 drain": "done",
        "4 fix": "waits",
        "5 recover": "ahead",
        "6 canary": "ahead",
        "7 burn_down": "ahead",
        "8 reopen": "ahead",
    }
    (current,) = [row for row in parts["run"].all("li") if row.attributes.get("aria-current") == "step"]
    assert "4 fix" in current.text


def test_a_held_run_asks_to_be_let_go_on_before_it_rolls_back() -> None:
    telemetry = with_gate(EMPTY, drain_state="recovering", admission_ratio=0.0, run=live("drain-and-recover", "canary"))
    held = history(step=6, verb="canary", held_until=AT_MS + 60_000, held_by="ann: looking")
    asked = shown(reading(telemetry, held))["asked"]
    assert "held until 22:14:20 UTC; then it rolls back" in asked.text
    assert "ann: looking" in asked.text
    assert offered(asked) == ["/do/resume?run=run-1", "/do/abort?run=run-1"]


def test_a_run_that_goes_on_can_be_held_and_aborted_and_its_gate_s_verdicts_have_values() -> None:
    telemetry = with_gate(
        EMPTY, drain_state="recovering", canary_ok_count=1, canary_failures=1, run=live("drain-and-recover", "canary")
    )
    parts = shown(reading(telemetry, history(entry(6, "canary", "started"), step=6, verb="canary")))
    assert offered(parts["run"]) == ["/do/hold-run?run=run-1", "/do/abort?run=run-1"]
    rows = {row.children[0].text: [cell.text for cell in row.children[1:]] for row in parts["verdicts"].all("tr")[1:]}
    assert rows["canary_ok_count"][0] == "1"
    assert {verdict.split()[0] for *_, verdict in rows.values()} <= {"pass", "fail", "inconclusive"}


def test_without_a_figure_the_verdict_is_inconclusive_and_says_why() -> None:
    telemetry = with_gate(EMPTY, drain_state="recovering", green=True, run=live("drain-and-recover", "reopen"))
    run = history(entry(8, "reopen", "started"), step=8, verb="reopen")
    damaged = replace(telemetry, damaged=frozenset({Part.READY}))
    row = next(row for row in shown(reading(damaged, run))["verdicts"].all("tr") if "queue_age" in row.text)
    assert row.attributes["data-verdict"] == "inconclusive"
    assert "no sample" in row.text


def test_the_steps_of_another_text_of_the_runbook_are_told_from_the_journal() -> None:
    run = history(entry(1, "thaw", "started", "melt it"), digest="0" * 16, step=1, verb="thaw")
    part = shown(reading(with_gate(EMPTY, run=live("drain-and-recover", "thaw")), run))["run"]
    assert "another text of the runbook" in part.text
    assert "melt it" in part.text
    assert shown(reading(EMPTY, run))["verdicts"].text == ""


def test_a_failed_run_says_in_which_step_and_why() -> None:
    run = history(
        entry(1, "freeze", "started"),
        entry(1, "freeze", "failed", "no worker answered"),
        state="rolled_back",
        step=1,
        verb="freeze",
        rollback_reason="manual_operator_hold",
        ended_by="ann",
        ended_why="wrong alert",
    )
    part = shown(reading(EMPTY, run))["run"]
    assert part.one("li", data_stage="failed").one("span", class_="verb").text == "1 freeze"
    assert "Rolled back: manual_operator_hold." in part.text
    assert "Ended by ann: wrong alert." in part.text


@pytest.mark.parametrize("pin", [pin for pin in PinReason if pin not in ("uninitialised", "control_data_lost")])
def test_every_pin_asks_and_offers_its_release(pin: PinReason) -> None:
    pinned = with_gate(EMPTY, drain_state="drain", pin=pin.value, admission_ratio=0.0)
    asked = shown(reading(pinned))["asked"]
    assert f"The gate is pinned ({pin})" in asked.text
    assert offered(asked) == ["/do/run?runbook=drain-and-recover", "/do/release"]


def test_a_pinned_gate_that_is_open_asks_without_urgency() -> None:
    asked = shown(reading(with_gate(EMPTY, pin="operator")))["asked"]
    assert "it stays open, and no alert opens a run" in asked.text
    assert asked.one("section").attributes["data-urgent"] == "no"
    assert offered(asked) == ["/do/release"]


def test_duplicates_come_first_and_nothing_else_is_offered_before_they_are_acknowledged() -> None:
    pinned = with_gate(EMPTY, drain_state="drain", pin="rolled_back", admission_ratio=0.0, duplicates_unacknowledged=2)
    assert offered(shown(reading(pinned))["asked"]) == ["/do/acknowledge"]


def test_jobs_without_an_end_are_listed_with_what_settles_them() -> None:
    telemetry = replace(EMPTY, unknown=25, blocked=1)
    parts = shown(reading(telemetry, jobs=(job("a b&c"), job("stuck", "blocked", attempt="6"))))
    assert "25 jobs are unknown" in parts["asked"].text
    assert "1 job is blocked" in parts["asked"].text
    unknown, blocked = parts["jobs"].all("article")
    assert offered(unknown) == [f"/do/{deed}?job=a%20b%26c" for deed in ("reconcile", "retry", "succeed", "fail")]
    assert offered(blocked) == [f"/do/{deed}?job=stuck" for deed in ("retry", "succeed", "fail")]
    assert "attempt 6" in blocked.text
    assert "And 24 more" in parts["jobs"].text


@pytest.mark.parametrize(("role", "deeds"), [(Role.VIEW, []), (Role.OPERATE, ["/do/reconcile?job=j"])])
def test_a_role_is_offered_what_it_may_do_alone(role: Role, deeds: list[str]) -> None:
    parts = shown(reading(replace(EMPTY, unknown=1), jobs=(job("j"),)), role)
    assert offered(parts["jobs"]) == deeds
    assert ("others act" in parts["jobs"].text) == (not deeds)


def test_all_nine_fields_are_shown_with_their_bounds() -> None:
    figures = shown(reading())["figures"]
    assert [one.one("h3").text for one in figures.all("article")] == [
        "queue_age_p95_seconds",
        "oldest_job_age_seconds",
        "deadline_slack_p10_seconds",
        "provider_5xx_rate",
        "provider_timeout_rate",
        "worker_inflight",
        "drain_state",
        "canary_ok_count",
        "rollback_reason",
    ]
    assert "reject from 20 s, drain from 25 s" in card(figures, "queue_age_p95_seconds").text
    assert card(figures, "deadline_slack_p10_seconds").one("p", class_="value").text == "no sample"


def window(calls: int, failed: int) -> ProviderWindow:
    return ProviderWindow(seconds=30, calls=calls, status_5xx=failed, timeouts=0)


@pytest.mark.parametrize(
    ("telemetry", "name", "level"),
    [
        (replace(EMPTY, queue_age_p95_seconds=19.9), "queue_age_p95_seconds", "calm"),
        (replace(EMPTY, queue_age_p95_seconds=20.0), "queue_age_p95_seconds", "near"),
        (replace(EMPTY, queue_age_p95_seconds=25.0), "queue_age_p95_seconds", "over"),
        (
            replace(EMPTY, queue_age_p95_seconds=9, thresholds={"drain_age_p95_seconds": 8.0}),
            "queue_age_p95_seconds",
            "over",
        ),
        (replace(EMPTY, deadline_slack_p10_seconds=15.1), "deadline_slack_p10_seconds", "calm"),
        (replace(EMPTY, deadline_slack_p10_seconds=15.0), "deadline_slack_p10_seconds", "near"),
        (replace(EMPTY, deadline_slack_p10_seconds=4.9), "deadline_slack_p10_seconds", "over"),
        (replace(EMPTY, provider=window(40, 1)), "provider_5xx_rate", "calm"),
        (replace(EMPTY, provider=window(40, 2)), "provider_5xx_rate", "over"),
        (replace(EMPTY, provider=window(4, 4)), "provider_5xx_rate", "calm"),
        (replace(EMPTY, provider=window(40, 2)), "provider_timeout_rate", "calm"),
        (replace(EMPTY, damaged=frozenset({Part.READY})), "queue_age_p95_seconds", "none"),
        (with_gate(EMPTY, rollback_reason="canary_failed"), "rollback_reason", "over"),
    ],
)
def test_a_figure_stands_to_its_bounds_as_the_decision_has_it(telemetry: Telemetry, name: str, level: str) -> None:
    shown_card = card(shown(reading(telemetry))["figures"], name)
    assert shown_card.attributes["data-level"] == level
    # Colour is never all that tells.
    words = {word.text for word in shown_card.all("span", class_="word")}
    assert words == ({level} if level in ("near", "over") and name != "rollback_reason" else set())


def test_a_rate_of_too_few_calls_says_so_and_damage_is_named() -> None:
    few = shown(reading(replace(EMPTY, provider=window(4, 4))))["figures"]
    assert "too few calls to count yet" in card(few, "provider_5xx_rate").text
    hurt = shown(reading(replace(EMPTY, damaged=frozenset({Part.READY, Part.CLOCK}))))["figures"]
    assert "Damaged by hand, so not shown: clock, ready." in hurt.text
    lost = shown(reading(replace(EMPTY, settings_digest="")))["figures"]
    assert "The stored contract is lost" in lost.text


def test_what_was_is_listed_newest_first_and_a_run_leads_to_its_own_page() -> None:
    past = shown(reading(runs=(run_record(state="succeeded"),), moves=(move(pin="operator"),)))["past"]
    assert past.one("a").attributes["href"] == "/runs/run-1"
    assert "drain, pinned (operator)" in past.text
    assert "succeeded" in past.text
