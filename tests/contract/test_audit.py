"""The audit log on real servers: what is written with what, how it is trimmed, and that tampering is found."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sluicegate import functions
from sluicegate.__main__ import dispatch
from sluicegate.all_queues import NAME, AllQueues
from sluicegate.audit import Break, Chain, Entry, Fault, Noted
from sluicegate.calls import Calls
from sluicegate.job import CallKind, Outcome
from tests.queues import OpenQueue, OpenQueueFunction
from tests.recovery import Recovery

Rows = list[tuple[str, dict[str, str]]]
NAMED = {"actor": "ada", "reason": "a test"}


def breaks(calls: Calls, noted: Noted | None = None) -> list[Break]:
    """Follow the chain as it is now."""
    chain: Chain | None = None
    found: list[Break] = []
    for ends, entries in calls.audit():
        chain = chain or Chain(ends.base_number, ends.base_hash, noted)
        found += chain.follow(entries)
        last = ends
    assert chain is not None
    return found + list(chain.end(last))


def faults(queue: OpenQueue, noted: Noted | None = None) -> list[Fault]:
    return [one.fault for one in breaks(queue.store, noted)]


def busy(queue: OpenQueue) -> None:
    """Do a little of everything that is audited."""
    run = Recovery(queue)
    run.step("journal", phase="started", verb="fix")
    queue.store.approve("run-1", "fix", **NAMED)
    queue.store.hold("run-1", None, **NAMED)
    queue.store.resume("run-1", **NAMED)
    run.step("recover")
    run.green()
    queue.store.order("abort", "ada", "wrong alert")
    queue.store.kill_switch(on=True, **NAMED)
    queue.store.order("open_end_run", "ada", "fixed")
    job = queue.started("send-mail")
    queue.settle(job, Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    queue.store.reconcile(job.job_id, "succeeded", actor="ada", reason="asked the provider", source="person")


@pytest.fixture
def audited(open_queue: OpenQueueFunction) -> OpenQueue:
    queue = open_queue(checked=False)
    busy(queue)
    return queue


def rows_of(queue: OpenQueue, key: str) -> list[dict[str, str]]:
    return [fields for _, fields in queue.client.xrange(key)]


def test_every_move_run_step_word_and_reconcile_has_its_entry_and_the_chain_is_whole(audited: OpenQueue) -> None:
    entries = rows_of(audited, "audit")
    by_kind: dict[str, list[dict[str, str]]] = {}
    for entry in entries:
        by_kind.setdefault(entry["kind"], []).append(entry)

    own = {"n", "at", "kind", "hash"}
    for kind, key in (("gate", "control:log"), ("run", "run:run-1:journal"), ("reconcile", "reconcile:log")):
        written = [{name: entry[name] for name in entry if name not in own | {"run"}} for entry in by_kind[kind]]
        there = [{name: row[name] for name in of} for row, of in zip(rows_of(audited, key), written, strict=True)]
        assert written == there, kind
    phases = [entry["phase"] for entry in by_kind["run"]]
    assert {"opened", "claimed", "started", "approved", "held", "resumed", "rolled_back", "ended"} <= set(phases)
    reasons = {entry["reason"] for entry in by_kind["gate"]}
    assert {"init", "run_opened", "run_recover", "operator_abort", "kill_switch_on", "operator_open_end_run"} <= reasons
    assert all(entry["actor"] for entry in entries)
    assert breaks(audited.store) == []


def rewritten(queue: OpenQueue, change: Callable[[Rows], Rows]) -> None:
    """Write the stream anew as somebody with the server's password would."""
    rows: Rows = change(queue.client.xrange("audit"))
    queue.client.delete("audit")
    for number, (_, fields) in enumerate(rows, 1):
        queue.client.xadd("audit", fields, id=f"{number}-0")


def altered(rows: Rows) -> Rows:
    rows[3][1]["actor"] = "eve"
    return rows


def dropped(rows: Rows) -> Rows:
    return rows[:3] + rows[5:]


def dropped_at_the_start(rows: Rows) -> Rows:
    return rows[2:]


def cut_off(rows: Rows) -> Rows:
    return rows[:-2]


def inserted(rows: Rows) -> Rows:
    return [*rows[:4], ("", {**rows[3][1], "actor": "eve"}), *rows[4:]]


def without_a_number(rows: Rows) -> Rows:
    return [*rows[:4], ("", {"kind": "gate", "note": "nothing to see"}), *rows[4:]]


def reordered(rows: Rows) -> Rows:
    rows[3], rows[4] = (rows[3][0], rows[4][1]), (rows[4][0], rows[3][1])
    return rows


def renumbered(rows: Rows) -> Rows:
    """Drop one and let all later ones close ranks; their hashes still tell."""
    return [*rows[:3], *((entry_id, {**fields, "n": str(int(fields["n"]) - 1)}) for entry_id, fields in rows[4:])]


def all_gone(_rows: Rows) -> Rows:
    return []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (altered, Fault.ALTERED),
        (dropped, Fault.MISSING),
        (dropped_at_the_start, Fault.MISSING),
        (cut_off, Fault.CUT_OFF),
        (inserted, Fault.MISPLACED),
        (without_a_number, Fault.MISPLACED),
        (reordered, Fault.MISSING),
        (renumbered, Fault.ALTERED),
        (all_gone, Fault.CUT_OFF),
    ],
)
def test_tampering_is_found(audited: OpenQueue, change: Callable[[Rows], Rows], fault: Fault) -> None:
    rewritten(audited, change)
    assert fault in faults(audited)


def test_what_is_written_after_tampering_hides_nothing(audited: OpenQueue) -> None:
    rewritten(audited, altered)
    audited.store.order("drain", "ada", "a test")
    assert Fault.ALTERED in faults(audited)


def test_a_chain_that_was_computed_anew_is_found_by_a_hash_that_was_kept_elsewhere(audited: OpenQueue) -> None:
    """Whoever can write to the server can forge the whole rest of it; only what it can't reach tells."""
    ends = audited.store.audit_ends()
    noted = Noted(ends.number, ends.hash)
    assert faults(audited, noted) == []

    def forged(rows: Rows) -> Rows:
        rows[3][1]["actor"] = "eve"
        before = rows[2][1]["hash"]
        for _, fields in rows[3:]:
            before = fields["hash"] = Entry(tuple(fields.items())).hash_after(before)
        audited.client.hset("audit:head", "hash", before)
        return rows

    rewritten(audited, forged)
    assert faults(audited) == []
    assert faults(audited, noted) == [Fault.NOT_AS_NOTED]
    assert faults(audited, Noted(ends.number + 9, ends.hash)) == [Fault.NOT_AS_NOTED]


def test_a_lost_head_and_a_key_of_another_type_stop_nothing_and_are_found(audited: OpenQueue) -> None:
    audited.client.delete("audit:head")
    assert audited.store.order("drain", "ada", "a test").answer == "moved"
    assert Fault.MISPLACED in faults(audited)
    audited.client.set("audit", "what is this")
    audited.client.delete("audit:head")
    audited.client.set("audit:head", "and this")
    assert audited.store.order("open", "ada", "a test").answer == "moved"
    assert audited.client.type("audit") == "stream"


# Trimming, with smaller numbers than the library's own.


def written(queue: OpenQueue, count: int, most: int, batch: int, retention_ms: int = 90 * 86_400_000) -> None:
    body = functions.body().replace("local MOST, BATCH = 20000, 200", f"local MOST, BATCH = {most}, {batch}")
    assert body != functions.body()
    call = f"""
      local q = open_call(ARGV)
      q.s = {{ timings = {{ run_retention_ms = {retention_ms} }} }}
      for i = 1, {count} do A.write(q, 'gate', 'note', 'entry ' .. i) end
      return 1
    """
    assert queue.client.eval(f"#!lua\n{body}\n{call}", 1, "control:gate", "", "0") == 1


def test_the_log_is_bounded_and_stays_whole_while_its_oldest_entries_go(queue: OpenQueue) -> None:
    written(queue, 40, 20, 5)
    for _ in range(60):
        written(queue, 1, 20, 5)
        assert 20 <= queue.client.xlen("audit") <= 25
        assert faults(queue) == []
    ends = queue.store.audit_ends()
    assert ends.base_number == ends.number - queue.client.xlen("audit")
    assert ends.base_number > 50
    assert Fault.NOT_AS_NOTED in faults(queue, Noted(3, "0" * 40))


def test_what_is_older_than_it_is_to_be_kept_goes(queue: OpenQueue) -> None:
    written(queue, 12, 1000, 5)
    written(queue, 1, 1000, 5, retention_ms=-60_000)
    assert queue.client.xlen("audit") < 12
    for _ in range(4):
        written(queue, 1, 1000, 5, retention_ms=-60_000)
    # The newest stays, whatever its age: it is what the next one is chained to.
    assert queue.client.xlen("audit") == 1
    assert faults(queue) == []


def test_what_holds_over_all_queues_has_a_log_of_its_own(redis_url: str) -> None:
    with closing(AllQueues.connect(redis_url, NAME)) as everywhere:
        everywhere.kill_switch(on=True, **NAMED)
        everywhere.kill_switch(on=False, **NAMED)
        for name in ("one", "two"):
            everywhere.permit(name, "r", {"limit": 9, "storm_queues": 2, "storm_ms": 1000})
        everywhere.reset_breaker("ada", "a test")
        said = [entry.body["what"] for _, entries in everywhere.audit() for entry in entries]
        assert said == ["kill_switch_on", "kill_switch_off", "breaker_tripped", "breaker_reset"]
        assert breaks(everywhere) == []


# The commands.


@pytest.fixture
def terminal(
    audited: OpenQueue, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(*words: str) -> tuple[int, str, str]:
        code = dispatch(["automation", "audit", *words])
        said = capsys.readouterr()
        return code, said.out.strip(), said.err.strip()

    return call


def test_the_log_is_verified_and_exported_and_the_export_verified_without_a_server(
    audited: OpenQueue, terminal: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    server, file = ("--redis-url", audited.url), tmp_path / "audit.jsonl"
    code, said, _ = terminal("verify", *server)
    assert code == 0
    noted = said.rpartition(" ")[2]
    assert said == f"Entries 1 to {audited.store.audit_ends().number} are whole. Keep elsewhere: {noted}"
    assert terminal("verify", *server, "--noted", noted)[0] == 0

    code, said, _ = terminal("export", "--out", str(file), *server)
    assert (code, said.rpartition(" ")[2]) == (0, noted)
    assert terminal("verify", "--file", str(file), "--noted", noted)[0] == 0
    assert len(terminal("export", *server)[1].splitlines()) == len(file.read_text().splitlines())

    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:4] + lines[5:]))
    code, said, _ = terminal("verify", "--file", str(file))
    assert (code, said) == (1, "missing: Entry 4 is not there.")
    rewritten(audited, altered)
    code, said, _ = terminal("verify", "--json", *server)
    body: dict[str, Any] = json.loads(said)
    assert (code, body["breaks"][0]["fault"]) == (1, "altered")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("verify", "--noted", "nothing"), "--noted 'nothing' is not a number, a colon and a hash"),
        (("verify", "--file", "/nowhere/at/all"), "The export /nowhere/at/all can't be read: No such file"),
        (("export", "--out", "/nowhere/at/all"), "The export can't be written to /nowhere/at/all"),
    ],
)
def test_bad_input_is_said_in_a_sentence(
    audited: OpenQueue, terminal: Callable[..., tuple[int, str, str]], words: tuple[str, ...], says: str
) -> None:
    code, _, said = terminal(*words, "--redis-url", audited.url)
    assert code == 2
    assert said.startswith(says)
