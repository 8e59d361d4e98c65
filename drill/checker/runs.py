"""Did every run keep its word? Judged from journals, the gate's log and the outside world's own log, and nothing else.

runs.jsonl      every run: its record, its journal in order, its approvals
gate-log.jsonl  every move of the gates, oldest first
plans.jsonl     what the plan shows of each step of each run
counters.jsonl  each queue's counters at the end
outside.jsonl   calls of hooks and notifications, by the world outside
strikes.jsonl   what was done to the parts
told.jsonl      which story each run told
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from drill.checker.finding import Finding, Weight
from drill.checker.logs import read_lines
from drill.checker.verdict import Verdict

# A torture in which no stale write was refused has not shown that one would be.
LEAST_REFUSED = 1

Row = Mapping[str, Any]
_REASONS = frozenset({"canary_failed", "queue_age_not_recovering", "duplicate_side_effect", "manual_operator_hold"})
_ROLLED_BACK = frozenset({"rolled_back", "rolled_back_degraded"})
_FINAL = frozenset({"succeeded", "failed", "superseded", "aborted"}) | _ROLLED_BACK
_OPENS = "run_reopen"
# What may follow an opened gate, and who else may open one.
_RAMP = frozenset({"run_ramp", "run_succeeded"})
_PERSONS = frozenset({"operator_open", "operator_open_end_run", "init"})
_HYSTERESIS = "normal"
_CHECKS = frozenset(
    {
        "green",
        "deadline_slack_p10_seconds",
        "queue_age_p95_seconds",
        "provider_5xx_rate",
        "provider_timeout_rate",
        "sluicegate_duplicate_side_effects_unacknowledged",
    }
)


@dataclass(frozen=True, slots=True)
class Demands:
    """Say what must have happened for a torture of runs to prove anything."""

    runs: int
    least_hits: int
    kinds: tuple[str, ...]
    stories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hold all records of one torture."""

    runs: Sequence[Row]
    moves: Sequence[Row]
    plans: Mapping[str, Mapping[str, str]]
    counters: Sequence[Row]
    outside: Sequence[Row]
    strikes: Sequence[Row]
    told: Sequence[Row]


def read_evidence(folder: Path) -> Evidence:
    """Read a folder; raises BadLog for a file that is missing or torn."""

    def rows(name: str) -> list[Row]:
        return [line for _, line in read_lines(folder / name)]

    plans = {str(row["run"]): row["lines"] for row in rows("plans.jsonl")}
    return Evidence(
        rows("runs.jsonl"),
        rows("gate-log.jsonl"),
        plans,
        rows("counters.jsonl"),
        rows("outside.jsonl"),
        rows("strikes.jsonl"),
        rows("told.jsonl"),
    )


def judge_runs(evidence: Evidence, demands: Demands) -> Verdict:
    """Look at every promise; one that nothing was looked at for is not kept."""
    findings = [
        once(evidence),
        moves_once(evidence),
        calls_with_reason(evidence),
        one_key(evidence),
        openings(evidence),
        ended(evidence),
        rollbacks(evidence),
        owners(evidence),
        plan_lines(evidence),
        *_happened(evidence, demands),
    ]
    return Verdict(tuple(findings), counts(evidence))


def once(evidence: Evidence) -> Finding:
    """Find steps that were begun, finished or failed twice in one run."""
    looked_at, broken = 0, []
    for run in evidence.runs:
        seen = Counter((entry["seq"], entry["phase"]) for entry in _steps(run) if entry["phase"] in ("started", "done"))
        looked_at += len(seen)
        broken += [f"{_id(run)}: step {seq} {phase} {n} times" for (seq, phase), n in seen.items() if n > 1]
        order = [entry["seq"] for entry in _steps(run) if entry["phase"] == "done"]
        if order != sorted(order):
            broken.append(f"{_id(run)}: its steps were done in the order {order}")
    return Finding("once", "no effect twice: each step is begun and done once, in order", looked_at, tuple(broken))


def moves_once(evidence: Evidence) -> Finding:
    """Find moves of the gate that one run made twice, or without a run of its own."""
    known = {_id(run) for run in evidence.runs}
    seen = Counter(
        (move["run"], move["reason"], move["note"] if move["reason"] == "run_ramp" else "")
        for move in evidence.moves
        if move["reason"].startswith("run_") and move["run"]
    )
    broken = [f"{run}: {reason} {n} times" for (run, reason, _), n in seen.items() if n > 1]
    broken += [f"{run}: {reason} by no run that is known" for run, reason, _ in seen if run not in known]
    return Finding("moves_once", "no run moves the gate twice the same way", len(seen), tuple(broken))


def calls_with_reason(evidence: Evidence) -> Finding:
    """Find calls outside that were made again though nothing said that the one before was not carried out."""
    looked_at, broken = 0, []
    for run in evidence.runs:
        for entries in _by_step(run).values():
            told = [entry for entry in entries if entry["phase"] in ("intent", "outcome", "unknown")]
            for before, entry in pairwise(told):
                if entry["phase"] != "intent":
                    continue
                looked_at += 1
                if not _may_be_repeated(before):
                    broken.append(f"{_id(run)}: called again after {before['phase']} {before['text']!r}")
            looked_at += sum(entry["phase"] == "intent" for entry in told[:1])
    says = "no call outside again without a probe, or an answer that nothing was done"
    return Finding("calls_with_reason", says, looked_at, tuple(broken))


def _may_be_repeated(before: Row) -> bool:
    """Unknown comes before a repeat only where the probe said no; refused, 429 and 503 were not carried out."""
    text = str(before["text"])
    return before["phase"] == "unknown" or (
        before["phase"] == "outcome" and text.startswith(("not sent", "429", "503"))
    )


def one_key(evidence: Evidence) -> Finding:
    """Find hook calls under a key that is no run's, more of them than intents, and keys under which two acted anew."""
    intents = Counter(_id(run) for run in evidence.runs for entry in run["journal"] if entry["phase"] == "intent")
    calls = Counter(str(row["key"]) for row in evidence.outside if row["kind"] == "fix")
    broken = []
    for key, n in calls.items():
        run = key.removesuffix("/fix")
        if key == run or run not in intents:
            broken.append(f"a hook was called under {key!r}, which no intent is of")
        elif n > intents[run]:
            broken.append(f"{key}: {n} calls, {intents[run]} intents")
    return Finding("one_key", "every call outside has its run's key and an intent before it", len(calls), tuple(broken))


def openings(evidence: Evidence) -> Finding:
    """Find gates that opened without a complete record of the checks, a named person or the hysteresis."""
    records = {_id(run): run for run in evidence.runs}
    looked_at, broken = 0, []
    for move in evidence.moves:
        if move["to_state"] != "admit" or (move["from_state"] == "admit" and move["reason"] not in _RAMP):
            continue
        looked_at += 1
        reason = move["reason"]
        if reason in _PERSONS and move["actor"]:
            continue
        if reason == _HYSTERESIS and move["from_state"] == "reject_new":
            continue
        if reason in (_OPENS, *_RAMP) and _opened_whole(records.get(move["run"])):
            continue
        broken.append(f"{move['queue']}: {move['from_state']} to admit at {move['at_ms']} by {move['actor']}: {reason}")
    return Finding("openings", "no gate opens without a complete record of its checks", looked_at, tuple(broken))


def _opened_whole(run: Row | None) -> bool:
    """Say whether a run's journal holds the six checks of its opening, each of them passed."""
    opened = [entry for entry in _steps(run) if entry["phase"] == "opened"] if run is not None else []
    if len(opened) != 1:
        return False
    checks: Mapping[str, Row] = json.loads(opened[0]["detail"])
    return checks.keys() >= _CHECKS and all(check["verdict"] == "pass" for check in checks.values())


def ended(evidence: Evidence) -> Finding:
    """Find runs that neither ended nor say why they hold."""
    broken = []
    for run in evidence.runs:
        record, journal = run["run"], run["journal"]
        holds = bool(journal) and journal[-1]["phase"] == "paged" and bool(journal[-1]["text"])
        if record["state"] not in _FINAL and not holds:
            broken.append(f"{_id(run)}: {record['state']} in step {record['verb'] or 'none'}")
    return Finding(
        "ended", "every run has ended, or holds for a reason that is named", len(evidence.runs), tuple(broken)
    )


def rollbacks(evidence: Evidence) -> Finding:
    """Find rollbacks without a listed reason, or that did not leave the gate closed and pinned until a person came."""
    looked_at, broken = 0, []
    for run in evidence.runs:
        record = run["run"]
        if record["state"] not in _ROLLED_BACK:
            continue
        looked_at += 1
        if record["rollback_reason"] not in _REASONS:
            broken.append(f"{_id(run)}: rolled back for {record['rollback_reason']!r}")
        moves = [move for move in evidence.moves if move["queue"] == run["queue"]]
        at = next((n for n, move in enumerate(moves) if move["run"] == _id(run) and move["pin"] == "rolled_back"), None)
        if at is None or moves[at]["to_state"] != "drain":
            broken.append(f"{_id(run)}: no move to drain, pinned, is in the gate's log")
            continue
        leaves = next((move for move in moves[at + 1 :] if move["to_state"] != "drain"), None)
        if leaves is not None and leaves["reason"] not in _PERSONS:
            broken.append(f"{_id(run)}: after it the gate was left by {leaves['reason']}, not by a named person")
    says = "every rollback has a listed reason, and ends closed until a person comes"
    return Finding("rollbacks", says, looked_at, tuple(broken))


def owners(evidence: Evidence) -> Finding:
    """Find entries in a journal by an executor that had been replaced: stale writes that were accepted."""
    looked_at, broken = 0, []
    for run in evidence.runs:
        owner = ""
        for entry in run["journal"]:
            if entry["phase"] == "claimed":
                owner = entry["actor"]
            elif str(entry["actor"]).startswith("executor:"):
                looked_at += 1
                if entry["actor"] != owner:
                    broken.append(f"{_id(run)}: {entry['phase']} by {entry['actor']}, owned by {owner or 'nobody'}")
    return Finding("owners", "no stale write is accepted", looked_at, tuple(broken))


def plan_lines(evidence: Evidence) -> Finding:
    """Find steps whose line in the journal is not the plan's."""
    looked_at, broken = 0, []
    for run in evidence.runs:
        lines = evidence.plans.get(_id(run), {})
        for entry in _steps(run):
            if entry["phase"] != "started":
                continue
            looked_at += 1
            if lines.get(str(entry["seq"])) != entry["text"]:
                broken.append(f"{_id(run)}: step {entry['seq']} was begun as {entry['text']!r}")
    return Finding("plan_lines", "the journal's lines are the plan's", looked_at, tuple(broken))


def _happened(evidence: Evidence, demands: Demands) -> Iterator[Finding]:
    """Make sure that the torture was one."""
    finished = sum(run["run"]["state"] in _FINAL for run in evidence.runs)
    yield _at_least("runs", "runs that ended", finished, demands.runs)
    refused = sum(int(row["counters"].get("fenced_steps", 0)) for row in evidence.counters)
    yield _at_least("stale_refused", "stale writes that were refused", refused, LEAST_REFUSED)
    hits = hits_of(evidence)
    for kind in (*demands.kinds, *demands.stories):
        yield _at_least(f"hit_{kind}", f"hits of {kind}", hits[kind], demands.least_hits)


def hits_of(evidence: Evidence) -> Counter[str]:
    """Count how often each kind of fault met something: stories by run, strikes, and the postman's by notification."""
    hits = Counter(str(row["kind"]) for row in evidence.strikes)
    hits.update(str(row["story"]) for row in evidence.told)
    posts = Counter(str(row["post"]) for row in evidence.outside if row["kind"] == "post")
    for kind, post in (("drop_webhooks", "dropped"), ("double_webhooks", "doubled"), ("lose_answers", "unanswered")):
        hits[kind] = posts[post]
    return hits


def counts(evidence: Evidence) -> Mapping[str, Mapping[str, int]]:
    """Count what happened, for the reader."""
    return {
        "runs": Counter(f"{run['run']['runbook']} {run['run']['state']}" for run in evidence.runs),
        "rollbacks": Counter(
            run["run"]["rollback_reason"] for run in evidence.runs if run["run"]["state"] in _ROLLED_BACK
        ),
        "opened by": Counter(run["run"]["trigger"] for run in evidence.runs),
        "faults": hits_of(evidence),
        "journal boundaries struck": Counter(row["boundary"] for row in evidence.strikes if row["boundary"]),
        "claims a run": Counter(
            str(sum(entry["phase"] == "claimed" for entry in run["journal"])) for run in evidence.runs
        ),
        "refused": {"stale writes": sum(int(row["counters"].get("fenced_steps", 0)) for row in evidence.counters)},
    }


def _at_least(name: str, what: str, count: int, least: int) -> Finding:
    broken = (f"{count}, not {least}",) if count < least else ()
    return Finding(name, f"{what}: at least {least}", max(count, 1), broken, Weight.PROMISE)


def _id(run: Row) -> str:
    return str(run["run"]["run_id"])


def _steps(run: Row) -> Iterator[Row]:
    return (entry for entry in run["journal"] if entry["verb"])


def _by_step(run: Row) -> Mapping[int, list[Row]]:
    grouped: defaultdict[int, list[Row]] = defaultdict(list)
    for entry in run["journal"]:
        grouped[entry["seq"]].append(entry)
    return grouped
