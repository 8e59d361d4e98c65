"""Logs of a run in which every promise was kept, and a way to break one of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from drill.checker.logs import read_logs
from drill.checker.verdict import Demands, Verdict, judge

Line = dict[str, Any]
DURABLE = Demands(durable=True, worker_kills=1, server_kills=1, least_succeeded=0.2)
LOSING = Demands(durable=False, worker_kills=1, server_kills=1, loses_gate=True, least_succeeded=0.2)


class Story:
    """Hold the logs of two callers, the provider, the onlooker and the conductor as lists of lines.

    key a is keyed: accepted, sent twice at once, succeeded. b is unsafe: refused at 10 for 5 s, asked for while live,
    accepted once due, unknown at the end. c is none: expired. d is refused for good.
    """

    def __init__(self) -> None:
        self.callers: list[list[Line]] = [[], []]
        self.provider: list[Line] = []
        self.gate: list[Line] = [gate(at, "admit") for at in (1, 11, 21, 31)]
        self.deeds: list[Line] = [deed(12, "kill", "worker-1"), deed(13, "kill", "queue-server")]
        self.asked(0, "a", 1.0, 1.1, accepted())
        self.asked(1, "a", 1.0, 1.2, accepted(replayed=True))
        self.asked(0, "a", 2.0, 2.1, refused("conflict", None), other=True)
        self.done("a", 1.5)
        self.seen("a", "succeeded")
        self.asked(0, "b", 10.0, 10.1, refused("overloaded", 5.0), effects="unsafe")
        self.asked(1, "b", 12.0, 12.1, refused("overloaded", 2.95, replayed=True), effects="unsafe")
        self.asked(1, "b", 15.5, 15.6, accepted(), effects="unsafe")
        self.asked(0, "b", 16.0, 16.1, accepted(replayed=True), effects="unsafe")
        self.done("b", 16.5)
        self.seen("b", "unknown")
        self.asked(0, "c", 3.0, 3.1, accepted(), effects="none")
        self.asked(1, "c", 4.0, 4.1, accepted(replayed=True), effects="none")
        self.done("c", 5.0)
        self.done("c", 6.0)
        self.seen("c", "expired")
        self.asked(0, "d", 7.0, 7.1, refused("unknown_class", None))
        self.asked(1, "d", 8.0, 8.1, refused("unknown_class", None, replayed=True))
        self.asked(0, "e", 7.0, 7.1, accepted())
        self.asked(1, "e", 8.0, 8.1, accepted(replayed=True))
        self.done("e", 7.5)
        self.seen("e", "succeeded")

    def asked(
        self,
        caller: int,
        key: str,
        sent: float,
        heard: float,
        answer: Line | None,
        *,
        effects: str = "keyed",
        other: bool = False,
    ) -> None:
        """Add a submission, and its answer where there is one."""
        log = self.callers[caller]
        number = len(log) + 1
        common = {"key": key, "class": "some", "effects": effects, "why": "first", "other": other}
        log.append({"kind": "asked", "ask": number, "at": sent, **common})
        if answer is not None:
            log.append({"kind": "answered", "ask": number, "at": heard, "job_id": key, **answer})

    def done(self, key: str | None, at: float, *, canary: bool = False) -> None:
        """Add an effect of the provider."""
        self.provider.append({"ts": at, "key": key, "effect": 1, "class": "some", "canary": canary})

    def seen(self, key: str, state: str) -> None:
        """Add what a caller was told of a job at the end."""
        self.callers[0].append({"kind": "seen", "at": 40.0, "key": key, "state": state})

    def write(self, folder: Path) -> Path:
        """Write the logs as a run leaves them."""
        logs = {f"caller-{number}": log for number, log in enumerate(self.callers)}
        for name, log in (logs | {"provider": self.provider, "gate": self.gate, "deeds": self.deeds}).items():
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
        return folder

    def judged(self, folder: Path, demands: Demands = DURABLE) -> Verdict:
        """Write the logs and let the checker read them."""
        return judge(read_logs(self.write(folder)), demands)


def accepted(*, replayed: bool = False, job_id: str | None = None) -> Line:
    answer = {"answer": "accepted", "reason": "", "retry_after_s": None, "replayed": replayed}
    return answer | ({"job_id": job_id} if job_id is not None else {})


def refused(reason: str, retry_after_s: float | None, *, replayed: bool = False) -> Line:
    return {"answer": "refused", "reason": reason, "retry_after_s": retry_after_s, "replayed": replayed}


def unanswered() -> Line:
    return {"answer": "unanswered", "job_id": "", "reason": "ReadError", "retry_after_s": 1.0, "replayed": False}


def gate(at: float, drain_state: str, pin: str = "") -> Line:
    return {"at": at, "drain_state": drain_state, "pin": pin}


def deed(at: float, what: str, whom: str, *, lost_gate: bool = False) -> Line:
    return {"at": at, "what": what, "whom": whom, "lost_gate": lost_gate}
