"""Each expectation of the failure-mode matrix passes on evidence in which all is well, and sees what spoils it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from drill.expectations import alerts, decisions, jobs, workers
from drill.load import Ask, Submission
from drill.rig import CAUGHT, RECONCILED
from drill.timeline import Mark, Post, Stored
from drill.verdict import Evidence, Expectation, JobEnd, Said
from sluicegate.admission import Decision
from tests.readings import AT_MS
from tests.unit.drill_run.story import job, sample, story, timeline

CLOSED = "admission_closed"


def asked(number: int, at_s: float, reason: str = "", *, replayed: bool = False, job_id: str = "") -> Submission:
    """Make one submission of a numbered job; a refusal says to come back after 6 s."""
    wait_s = 6.0 if reason else None
    decision = Decision(not reason, job_id or f"j{number}", reason, wait_s, replayed)
    return Submission(AT_MS + round(at_s * 1000), Ask("test-patch", f"k{number}", "{}"), decision)


PAUSED = (
    asked(1, 0),
    asked(2, 1, CLOSED),
    asked(3, 1, CLOSED),
    asked(2, 2, CLOSED, replayed=True),
    asked(3, 2, CLOSED, replayed=True),
    asked(2, 9),
    asked(3, 9),
)
TWICE = (asked(1, 0), asked(2, 0), asked(1, 1, replayed=True), asked(2, 1, replayed=True))
BEFORE = Stored(("j1", "j2"), {"j1": {"job": {"state": "ready"}}, "j2": {"job": {"state": "ready"}}})
AFTER = Stored(("j1", "j2"), {"j1": {"job": {"state": "ready"}}, "j2": {"job": {"state": "ready"}}})
ALL_DONE = (job(1), job(2))
RECONCILED_ONE = JobEnd("j1", "k1", "test-patch", "succeeded", "reconciled", attempt=1)
SEVERAL_STARTS = (replace(job(1), attempt=7), replace(job(2), attempt=6))
JUDGED = Mark(AT_MS, RECONCILED, "j1: the ledger holds no intent of its last start: moved, now ready")
RETRIED = (replace(job(1), attempt=2), job(2))
FOUND = timeline(
    samples=[sample(0), sample(6.3, unknown=1)], marks=[Mark(AT_MS, CAUGHT, "SIGSTOP of worker-1"), JUDGED]
)


def said(at_s: float, event: str, worker: str = "worker-1", job_id: str = "j1", **fields: Any) -> Said:
    return Said(AT_MS / 1000 + at_s, worker, event, job_id, fields)


LIMITED = (said(0, "provider_call", status=429), said(2.01, "provider_call", status=429), said(4.4, "provider_call"))
REFUSED = (said(8, "lease_lost", before="call"), said(7, "provider_call", worker="worker-2", status=200))
POSTS = [Post("r1", "moved", duplicate=False), Post("r1", "attached", duplicate=True)]

SOUND: dict[str, tuple[Expectation, Evidence]] = {
    "paused": (decisions.some_are_refused(1, CLOSED), story(submissions=PAUSED)),
    "stored": (decisions.refusals_are_stored(2), story(submissions=PAUSED)),
    "ids": (decisions.ids_stay_the_same(), story(submissions=PAUSED)),
    "replayed": (decisions.repeats_are_replayed(2), story(submissions=TWICE)),
    "restart": (decisions.survive_the_restart(2), story(timeline=timeline(stored=[BEFORE, AFTER]))),
    "succeeds": (jobs.each_succeeds(2), story(jobs=ALL_DONE)),
    "settled": (jobs.settled_ones_are_not_repeated(), story(jobs=(RECONCILED_ONE, job(2)))),
    "not blocked": (jobs.none_is_blocked(), story()),
    "no retry": (jobs.use_no_retry(), story(jobs=SEVERAL_STARTS)),
    "ledger": (jobs.ledger_allows_the_retry(), story(timeline=FOUND, jobs=RETRIED)),
    "found": (jobs.few_are_unknown_in_time(CAUGHT), story(timeline=FOUND)),
    "told": (workers.wait_as_told(429, 10), story(said=LIMITED)),
    "late": (workers.late_one_is_refused("worker-1"), story(said=REFUSED)),
    "one run": (alerts.repeated_posts_are_one(2), story(timeline=timeline(posts=POSTS))),
}


@pytest.mark.parametrize("name", SOUND)
def test_an_expectation_holds_where_all_is_well(name: str) -> None:
    expectation, evidence = SOUND[name]
    seen = expectation.look(evidence)
    assert seen.ok, seen.text


SPOILT: list[tuple[str, str, dict[str, Any]]] = [
    ("one more was accepted", "paused", {"submissions": (asked(1, 0), asked(2, 0), asked(3, 1, CLOSED))}),
    ("another reason", "paused", {"submissions": (asked(1, 0), asked(2, 1, "overloaded"))}),
    ("nothing was refused", "paused", {"submissions": (asked(1, 0),)}),
    ("decided anew", "stored", {"submissions": (*PAUSED[:3], asked(2, 2, CLOSED), asked(3, 2, CLOSED))}),
    ("accepted too early", "stored", {"submissions": (*PAUSED[:3], asked(2, 2), asked(3, 2))}),
    ("nobody came too early", "stored", {"submissions": (*PAUSED[:3], *PAUSED[5:])}),
    ("another id", "ids", {"submissions": (*PAUSED[:6], asked(3, 9, job_id="j9"))}),
    ("one id for two keys", "ids", {"submissions": (asked(1, 0), asked(2, 0, job_id="j1"))}),
    ("never accepted", "ids", {"submissions": PAUSED[:5]}),
    ("nothing was submitted", "ids", {"submissions": ()}),
    ("decided twice", "replayed", {"submissions": (*TWICE[:3], asked(2, 1))}),
    ("not repeated", "replayed", {"submissions": TWICE[:3]}),
    ("one is gone", "restart", {"timeline": timeline(stored=[BEFORE, Stored(("j1",), {"j1": BEFORE.records["j1"]})])}),
    (
        "one was changed",
        "restart",
        {"timeline": timeline(stored=[BEFORE, Stored(BEFORE.pending, {**AFTER.records, "j2": {"job": {}}})])},
    ),
    ("another order", "restart", {"timeline": timeline(stored=[BEFORE, Stored(("j2", "j1"), AFTER.records)])}),
    ("never restarted", "restart", {"timeline": timeline(stored=[BEFORE])}),
    ("one failed", "succeeds", {"jobs": (job(1), job(2, "failed"))}),
    ("one is missing", "succeeds", {"jobs": (job(1),)}),
    ("done again", "settled", {"jobs": (replace(RECONCILED_ONE, attempt=2),)}),
    ("nothing was settled", "settled", {"jobs": ALL_DONE}),
    ("one was blocked", "not blocked", {"timeline": timeline(samples=[sample(0), sample(1, blocked=1), sample(2)])}),
    ("one is blocked", "not blocked", {"jobs": (job(1, "blocked"),)}),
    ("a retry was used", "no retry", {"jobs": (replace(SEVERAL_STARTS[0], retries=1),)}),
    ("never tried again", "no retry", {"jobs": ALL_DONE}),
    ("nothing was judged", "ledger", {"timeline": timeline()}),
    ("two started again", "ledger", {"jobs": (RETRIED[0], replace(job(2), attempt=2))}),
    ("found late", "found", {"timeline": replace(FOUND, samples=[sample(0), sample(7.3, unknown=1)])}),
    ("three were lost", "found", {"timeline": replace(FOUND, samples=[sample(0), sample(6.3, unknown=3)])}),
    ("never caught", "found", {"timeline": replace(FOUND, marks=[])}),
    ("came back early", "told", {"said": (LIMITED[0], said(1.5, "provider_call", status=429))}),
    ("never limited", "told", {"said": ()}),
    ("called all the same", "late", {"said": (*REFUSED, said(9, "provider_call", status=200))}),
    ("never refused", "late", {"said": REFUSED[1:]}),
    ("two runs", "one run", {"timeline": timeline(posts=[POSTS[0], Post("r2", "moved", duplicate=False)])}),
    ("one answer", "one run", {"timeline": timeline(posts=POSTS[:1])}),
    ("no run", "one run", {"timeline": timeline(posts=[Post("", "waiting", duplicate=False)] * 2)}),
]


@pytest.mark.parametrize(("name", "spoilt"), [case[1:] for case in SPOILT], ids=[case[0] for case in SPOILT])
def test_an_expectation_sees_what_spoils_it(name: str, spoilt: dict[str, Any]) -> None:
    expectation, evidence = SOUND[name]
    seen = expectation.look(replace(evidence, **spoilt))
    assert not seen.ok
    assert seen.text
