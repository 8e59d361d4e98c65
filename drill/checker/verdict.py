"""Put all findings on one run together: the table, the counts and whether every promise was kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drill.checker import effects, ends, gate, refusals
from drill.checker.finding import Finding, Weight
from drill.checker.logs import Logs


@dataclass(frozen=True, slots=True)
class Demands:
    """Say what the run's server promises and what must have happened for the run to prove anything.

    durable: what was answered may not be lost. loses_gate: control data was to be lost.
    """

    durable: bool
    worker_kills: int = 0
    server_kills: int = 0
    loses_gate: bool = False
    least_succeeded: float = 0.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold the findings and the counts of one run."""

    findings: tuple[Finding, ...]
    counts: Mapping[str, Mapping[str, int]]

    @property
    def passed(self) -> bool:
        """Tell whether every promise was kept."""
        return not any(finding.failed for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return it as it is kept beside the logs."""
        return {
            "passed": self.passed,
            "findings": [
                {
                    "name": finding.name,
                    "says": finding.says,
                    "looked_at": finding.looked_at,
                    "broken": len(finding.broken),
                    "verdict": finding.word,
                    "examples": list(finding.examples),
                }
                for finding in self.findings
            ],
            "counts": {name: dict(counted) for name, counted in self.counts.items()},
        }


def judge(logs: Logs, demands: Demands) -> Verdict:
    """Look at everything; a server that may lose data turns some promises into figures of what was lost."""
    if_durable = Weight.PROMISE if demands.durable else Weight.LOSS
    findings = [
        effects.doubled(logs, effects.KEYED, Weight.PROMISE),
        effects.doubled(logs, effects.UNSAFE, if_durable),
        effects.strangers(logs),
        effects.empty_successes(logs),
        ends.ends(logs),
        ends.lost(logs, if_durable),
        ends.one_id(logs),
        ends.one_acceptance(logs, if_durable),
        ends.accepted_for_good(logs, if_durable),
        refusals.same_while_live(logs, if_durable),
        ends.conflicts(logs, if_durable),
        ends.sent_twice(logs),
        ends.troubles(logs),
        *((gate.stays_shut(logs),) if demands.loses_gate else ()),
        *_happened(logs, demands),
        effects.doubled(logs, effects.NONE, Weight.FIGURE),
        refusals.decided_again_when_due(logs),
    ]
    return Verdict(tuple(findings), _counts(logs))


def _happened(logs: Logs, demands: Demands) -> tuple[Finding, ...]:
    """Make sure that the run was what it was to be: kills of each kind, and enough work done for them to matter."""
    killed = Counter(
        "worker" if deed.whom.startswith("worker") else deed.whom for deed in logs.deeds if deed.what == "kill"
    )
    states, keys = ends.last_states(logs), {ask.key for ask in logs.asks}
    succeeded = sum(state == "succeeded" for state in states.values())
    return (
        _at_least("worker_kills", "kills of workers", killed["worker"], demands.worker_kills),
        _at_least("server_kills", "kills of the queue's server", killed["queue-server"], demands.server_kills),
        _at_least("succeeded", "jobs that succeeded", succeeded, round(demands.least_succeeded * len(keys))),
    )


def _at_least(name: str, what: str, count: int, least: int) -> Finding:
    broken = (f"{count}, not {least}",) if count < least else ()
    return Finding(name, f"{what}: at least {least}", max(count, 1), broken)


def _counts(logs: Logs) -> Mapping[str, Mapping[str, int]]:
    states = ends.last_states(logs)
    accepted = ends.accepted_keys(logs)
    done = {effect.key for effect in logs.effects}
    return {
        "submissions": Counter(ask.answer for ask in logs.asks),
        "sent": Counter(ask.why for ask in logs.asks),
        "refusals": Counter(ask.reason for ask in logs.asks if ask.answer == "refused"),
        "ends": Counter(states.get(key, "not looked at") for key in accepted),
        "expired": Counter(
            "and done all the same" if key in done else "not done"
            for key, state in states.items()
            if state == "expired"
        ),
        "deeds": Counter(f"{deed.what} {deed.whom}" for deed in logs.deeds),
        "gate": Counter(look.drain_state or "unreadable" for look in logs.readings),
        "provider": Counter("canary" if effect.canary else effect.job_class for effect in logs.effects),
    }


def table(verdict: Verdict) -> tuple[str, ...]:
    """Return the verdict as lines for a person, what broke last."""
    rows = [
        (finding.says, str(finding.looked_at), str(len(finding.broken)), finding.word) for finding in verdict.findings
    ]
    head = ("promise", "looked at", "broken", "verdict")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(4)]
    lines = [_row(row, widths) for row in (head, *rows)]
    for name, counted in verdict.counts.items():
        listed = ", ".join(f"{word or '(none)'} {count}" for word, count in sorted(counted.items()))
        lines.append(f"{name}: {listed or 'none'}")
    for finding in verdict.findings:
        lines += [
            f"{finding.word} {finding.name}: {example}"
            for example in finding.examples
            if finding.weight is not Weight.FIGURE
        ]
    return tuple(lines)


def _row(row: tuple[str, str, str, str], widths: list[int]) -> str:
    says, looked_at, broken, word = row
    return f"{says:<{widths[0]}}  {looked_at:>{widths[1]}}  {broken:>{widths[2]}}  {word}"
