"""The judge of runs is fed records in which one promise is broken, and says which."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from drill.checker.logs import BadLog
from drill.checker.runs import Demands, judge_runs, read_evidence
from drill.checker.verdict import Verdict
from drill.runs_torture.run import DEMANDS, judge_folder

RUN, AUDIT = "run-1", "audit-1"
ONE, TWO = "executor:host:1:aa", "executor:host:2:bb"
CHECKS = (
    "green",
    "deadline_slack_p10_seconds",
    "queue_age_p95_seconds",
    "provider_5xx_rate",
    "provider_timeout_rate",
    "sluicegate_duplicate_side_effects_unacknowledged",
)
Records = dict[str, list[dict[str, Any]]]


def entry(seq: int, verb: str, phase: str, actor: str, text: str = "", detail: str = "{}") -> dict[str, Any]:
    return {"at_ms": seq, "seq": seq, "verb": verb, "phase": phase, "actor": actor, "text": text, "detail": detail}


def record(run: str, state: str, reason: str = "", runbook: str = "drain-and-recover") -> dict[str, Any]:
    return {"run_id": run, "runbook": runbook, "state": state, "verb": "reopen", "rollback_reason": reason,
            "trigger": "webhook"}  # fmt: skip


def move(run: str, before: str, after: str, reason: str, actor: str = ONE, pin: str = "") -> dict[str, Any]:
    return {"queue": "mill", "run": run, "from_state": before, "to_state": after, "reason": reason, "actor": actor,
            "pin": pin, "note": "ramp 50 %", "at_ms": 1}  # fmt: skip


def kept() -> Records:
    """Give the records of a recovery that was taken over in its second step, and of a rollback."""
    passed = json.dumps({name: {"value": 1, "verdict": "pass"} for name in CHECKS})
    recovery = [
        entry(0, "", "opened", "am", "webhook: alert"),
        entry(0, "", "claimed", ONE),
        entry(1, "freeze", "started", ONE, "freeze it"),
        entry(1, "freeze", "done", ONE),
        entry(2, "fix", "started", ONE, "fix it"),
        entry(2, "fix", "intent", ONE, "call 1"),
        entry(2, "fix", "claimed", TWO),
        entry(2, "fix", "unknown", TWO, "lost"),
        entry(2, "fix", "intent", TWO, "call 2"),
        entry(2, "fix", "outcome", TWO, "503"),
        entry(2, "fix", "intent", TWO, "call 3"),
        entry(2, "fix", "outcome", TWO, "200"),
        entry(2, "fix", "done", TWO),
        entry(3, "reopen", "started", TWO, "reopen it"),
        entry(3, "reopen", "opened", TWO, "all checks passed", passed),
        entry(0, "", "ended", TWO, "succeeded: ramp_end"),
    ]
    rolled_back = [entry(0, "", "claimed", ONE), entry(1, "freeze", "started", ONE, "freeze it")]
    return {
        "runs.jsonl": [
            {"queue": "mill", "run": record(RUN, "succeeded"), "journal": recovery},
            {"queue": "mill", "run": record("run-2", "rolled_back", "canary_failed"), "journal": rolled_back},
        ],
        "gate-log.jsonl": [
            move("", "drain", "admit", "init", "torture"),
            move(RUN, "admit", "drain", "run_opened"),
            move(RUN, "drain", "recovering", "run_recover"),
            move(RUN, "recovering", "admit", "run_reopen", TWO),
            move(RUN, "admit", "admit", "run_succeeded", TWO),
            move("", "admit", "reject_new", "admission_threshold", "controller"),
            move("", "reject_new", "admit", "normal", "controller"),
            move("run-2", "admit", "drain", "run_opened"),
            move("run-2", "recovering", "drain", "run_rollback", ONE, pin="rolled_back"),
            move("", "drain", "admit", "operator_open", "torture"),
        ],
        "plans.jsonl": [
            {"run": RUN, "lines": {"1": "freeze it", "2": "fix it", "3": "reopen it"}},
            {"run": "run-2", "lines": {"1": "freeze it"}},
        ],
        "counters.jsonl": [{"queue": "mill", "counters": {"fenced_steps": 1}}],
        "outside.jsonl": [
            *({"kind": "fix", "queue": "mill", "key": f"{RUN}/fix"} for _ in range(3)),
            {"kind": "post", "queue": "mill", "post": "dropped"},
        ],
        "strikes.jsonl": [
            {"kind": "kill_executor", "whom": "replica-1", "boundary": "fix:intent"},
            {"kind": "drop_webhooks", "whom": "postman", "boundary": ""},
        ],
        "told.jsonl": [{"story": "recovers", "run": RUN}],
    }


DEMANDED = Demands(2, 1, ("kill_executor", "drop_webhooks"), ("recovers",))


def written(folder: Path, records: Records) -> Path:
    for name, rows in records.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def judged(folder: Path, records: Records) -> Verdict:
    return judge_runs(read_evidence(written(folder, records)), DEMANDED)


def failed(verdict: Verdict) -> set[str]:
    return {finding.name for finding in verdict.findings if finding.failed}


def test_records_of_runs_that_kept_every_promise_pass(tmp_path: Path) -> None:
    verdict = judged(tmp_path, kept())
    assert failed(verdict) == set()
    assert all(finding.looked_at for finding in verdict.findings)
    assert verdict.counts["journal boundaries struck"] == {"fix:intent": 1}


def journal(records: Records) -> list[dict[str, Any]]:
    return records["runs.jsonl"][0]["journal"]  # type: ignore[no-any-return]  # it is what kept() wrote


def done_twice(records: Records) -> None:
    journal(records).insert(4, entry(1, "freeze", "done", ONE))


def out_of_order(records: Records) -> None:
    journal(records).append(entry(1, "snapshot", "done", TWO))


def moved_twice(records: Records) -> None:
    records["gate-log.jsonl"].insert(3, move(RUN, "drain", "recovering", "run_recover"))


def moved_by_nobody(records: Records) -> None:
    records["gate-log.jsonl"].append(move("run-9", "admit", "drain", "run_opened"))


def called_after_success(records: Records) -> None:
    journal(records).insert(12, entry(2, "fix", "intent", TWO, "call 4"))


def called_without_a_word(records: Records) -> None:
    del journal(records)[7]


def called_under_no_key(records: Records) -> None:
    records["outside.jsonl"].append({"kind": "fix", "queue": "mill", "key": ""})


def called_without_intent(records: Records) -> None:
    records["outside.jsonl"].append({"kind": "fix", "queue": "mill", "key": f"{RUN}/fix"})


def opened_on_a_failed_check(records: Records) -> None:
    opened = next(one for one in journal(records) if one["phase"] == "opened" and one["verb"])
    opened["detail"] = opened["detail"].replace('"pass"', '"inconclusive"', 1)


def opened_on_five_checks(records: Records) -> None:
    opened = next(one for one in journal(records) if one["phase"] == "opened" and one["verb"])
    opened["detail"] = json.dumps({name: {"verdict": "pass"} for name in CHECKS[1:]})


def opened_out_of_a_drain(records: Records) -> None:
    records["gate-log.jsonl"].append(move("", "drain", "admit", "normal", "controller"))


def never_ended(records: Records) -> None:
    records["runs.jsonl"][0]["run"]["state"] = "running"


def rolled_back_for_nothing(records: Records) -> None:
    records["runs.jsonl"][1]["run"]["rollback_reason"] = "felt like it"


def rolled_back_open(records: Records) -> None:
    records["gate-log.jsonl"][-2]["to_state"] = "reject_new"


def rolled_back_without_a_pin(records: Records) -> None:
    records["gate-log.jsonl"][-2]["pin"] = ""


def left_by_a_machine(records: Records) -> None:
    records["gate-log.jsonl"][-1]["reason"] = "run_recover"


def stale_write(records: Records) -> None:
    journal(records).insert(8, entry(2, "fix", "progress", ONE))


def another_line(records: Records) -> None:
    journal(records)[2]["text"] = "freeze it a little"


def nothing_refused(records: Records) -> None:
    records["counters.jsonl"][0]["counters"] = {}


def no_run(records: Records) -> None:
    records["runs.jsonl"].pop()
    records["gate-log.jsonl"] = records["gate-log.jsonl"][:7]


def no_kill(records: Records) -> None:
    records["strikes.jsonl"].pop(0)


def a_post_that_met_nothing(records: Records) -> None:
    records["outside.jsonl"].pop()


def no_story(records: Records) -> None:
    records["told.jsonl"].clear()


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (done_twice, "once"),
        (out_of_order, "once"),
        (moved_twice, "moves_once"),
        (moved_by_nobody, "moves_once"),
        (called_after_success, "calls_with_reason"),
        (called_without_a_word, "calls_with_reason"),
        (called_under_no_key, "one_key"),
        (called_without_intent, "one_key"),
        (opened_on_a_failed_check, "openings"),
        (opened_on_five_checks, "openings"),
        (opened_out_of_a_drain, "openings"),
        (never_ended, "ended"),
        (rolled_back_for_nothing, "rollbacks"),
        (rolled_back_open, "rollbacks"),
        (rolled_back_without_a_pin, "rollbacks"),
        (left_by_a_machine, "rollbacks"),
        (stale_write, "owners"),
        (another_line, "plan_lines"),
        (nothing_refused, "stale_refused"),
        (no_run, "runs"),
        (no_kill, "hit_kill_executor"),
        (a_post_that_met_nothing, "hit_drop_webhooks"),
        (no_story, "hit_recovers"),
    ],
)
def test_one_broken_promise_is_named(spoil: Callable[[Records], None], name: str, tmp_path: Path) -> None:
    records = deepcopy(kept())
    spoil(records)
    assert name in failed(judged(tmp_path, records))


def test_a_run_that_holds_for_a_named_reason_has_not_to_end(tmp_path: Path) -> None:
    records = kept()
    never_ended(records)
    journal(records).append(entry(3, "reopen", "paged", TWO, "waits for a named person"))
    assert "ended" not in failed(judged(tmp_path, records))


def test_a_torn_record_proves_nothing(tmp_path: Path) -> None:
    written(tmp_path, kept())
    (tmp_path / "runs.jsonl").write_text('{"queue": "mill", "ru')
    with pytest.raises(BadLog, match=r"runs\.jsonl, line 1"):
        read_evidence(tmp_path)


def test_a_folder_is_judged_by_its_own_demands_and_keeps_the_verdict(tmp_path: Path) -> None:
    written(tmp_path, kept())
    (tmp_path / DEMANDS).write_text(json.dumps(asdict(DEMANDED)))
    assert judge_folder(tmp_path).passed
    assert json.loads((tmp_path / "verdict.json").read_text())["passed"] is True
