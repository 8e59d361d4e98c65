"""What people are told of, and what holds over all queues, each part by itself on a real server."""

from __future__ import annotations

from typing import Any

from tests.function_values import worth
from tests.gate_frame import FRAME, NOW_MS, gate


def told(client: Any) -> list[dict[str, str]]:
    """Give every notice and take them all away."""
    found = [fields for _, fields in client.xrange("notices")]
    client.delete("notices")
    return found


def tell(client: Any, body: str) -> list[dict[str, str]]:
    worth(client, f"{FRAME} {body} return 1")
    return told(client)


def test_a_notice_holds_what_there_is_to_say(client: Any) -> None:
    names = ("run", "runbook", "actor", "reason", "state", "text")
    head = {"at": str(NOW_MS), "kind": "k"}
    assert tell(client, "R.tell(q, 'k', {})") == [head | dict.fromkeys(names, "")]
    packed = ", ".join(f"{name} = '{name}'" for name in names)
    assert tell(client, f"R.tell(q, 'k', {{ {packed} }})") == [head | {name: name for name in names}]


def test_a_page_is_told_and_no_other_line_of_the_journal(client: Any) -> None:
    assert tell(client, "R.journal(q, 'r', { phase = 'started', verb = 'fix' })") == []
    (notice,) = tell(client, "R.journal(q, 'r', { phase = 'paged', verb = 'fix', actor = 'a', text = 't' })")
    assert [notice[name] for name in ("kind", "run", "actor", "state", "text")] == ["holding", "r", "a", "fix", "t"]


def test_the_audit_log_has_each_line_of_a_journal(client: Any) -> None:
    bare = {"seq": "0", "verb": "", "phase": "p", "actor": "", "text": "", "detail": "{}"}
    full = {"seq": "3", "verb": "v", "phase": "p", "actor": "a", "text": "t", "detail": "[]"}
    worth(client, f"{FRAME} R.journal(q, 'r', {{ phase = 'p' }}) return 1")
    packed = ", ".join(f"{name} = '{value}'" for name, value in full.items())
    worth(client, f"{FRAME} R.journal(q, 'r', {{ {packed} }}) return 1")
    entries = [fields for _, fields in client.xrange("audit")]
    assert [{name: entry[name] for name in bare} for entry in entries] == [bare, full]


def test_an_end_is_told_as_a_reopening_only_of_a_recovery_that_succeeded(client: Any) -> None:
    for runbook, state, kind in (
        ("drain-and-recover", "succeeded", "reopened"), ("drain-and-recover", "aborted", "ended"),
        ("rollback-and-audit", "succeeded", "ended"),
    ):  # fmt: skip
        end = f"R.tell_end(q, {{ id = 'r', runbook = '{runbook}' }}, '{state}', {{ actor = 'a', reason = 'why' }})"
        (notice,) = tell(client, end)
        assert (notice["kind"], notice["text"], notice["state"]) == (kind, "why", state)
    (notice,) = tell(client, "R.tell_end(q, { id = 'r' }, 's', { actor = 'a', reason = 'why', note = 'n' })")
    assert notice["text"] == "n"


def test_a_rollback_is_told_with_its_reason(client: Any) -> None:
    for why, text in (("", "why"), (", note = 'n'", "n")):
        revoke = (
            f"R.revoke(q, {{ id = 'r', runbook = 'b' }}, 's', 'canary_failed', {{ actor = 'a', reason = 'why' {why} }})"
        )
        (notice,) = tell(client, revoke)
        assert [notice[name] for name in ("kind", "reason", "text")] == ["rolled_back", "canary_failed", text]


def pinned(client: Any, pin: str, before: str, more: str = "", why: str = "") -> list[tuple[str, ...]]:
    body = f"local g = {{ pin = {pin}, pin_note = 'n', drain_state = 'drain' {more} }}"
    notices = tell(client, f"{body} R.tell_pin(q, g, {before}, {{ actor = 'a', reason = 'why' {why} }})")
    return [tuple(notice[name] for name in ("kind", "run", "reason", "text")) for notice in notices]


def test_a_pin_that_changes_is_told_once(client: Any) -> None:
    assert pinned(client, "'operator'", "'operator'") == []
    assert pinned(client, "nil", "nil") == []
    assert pinned(client, "'operator'", "nil") == [("pinned", "", "operator", "n")]
    assert pinned(client, "'operator'", "nil", ", run = { id = 'r' }", ", run = 's'") == [
        ("pinned", "r", "operator", "n")
    ]
    assert pinned(client, "nil", "'operator'", why=", run = 's'") == [("released", "s", "operator", "why")]
    assert pinned(client, "nil", "'operator'", why=", note = 'm'") == [("released", "", "operator", "m")]


def test_only_a_closed_pinned_gate_is_told_of_again(client: Any) -> None:
    def still() -> bool:
        return worth(client, f"{FRAME} return commands.still_pinned(q).told") is True

    gate(client)
    assert not still()
    gate(client, pin="operator", pin_note="n")
    assert not still()
    gate(client, pin="operator", pin_note="n", drain_state="reject_new")
    client.mset({"drain_state": "reject_new", "admission": "closed"})
    assert still()
    (notice,) = told(client)
    assert [notice[name] for name in ("kind", "reason", "state", "text")] == [
        "still_pinned",
        "operator",
        "reject_new",
        "n",
    ]
    gate(client, drain_state="drain")
    client.mset({"drain_state": "drain", "admission": "closed"})
    assert not still()


def test_levels_are_told_of_where_they_rise(client: Any) -> None:
    def rising(many: int) -> list[str]:
        client.delete("queue:unknown")
        if many:
            client.zadd("queue:unknown", {str(n): n for n in range(many)})
        return [notice["text"] for notice in tell(client, "commands.rising(q)")]

    assert rising(0) == []
    assert rising(2) == ["2 jobs are unknown, 0 before"]
    assert [rising(2), rising(1)] == [[], []]
    assert rising(2) == ["2 jobs are unknown, 1 before"]
    client.hset("notices:levels", "unknown", "x")
    assert rising(2) == ["2 jobs are unknown, 0 before"]
    client.zadd("queue:blocked", {"b": 1})
    assert worth(client, f"{FRAME} return commands.rising(q).told") is True
    assert worth(client, f"{FRAME} return commands.rising(q).told") is False


def take(client: Any, consumer: str = "c1", idle_ms: int = 1000) -> dict[str, Any]:
    asked = f"q.a = {{ receiver = 'mail', consumer = '{consumer}', idle_ms = {idle_ms} }}"
    found: dict[str, Any] = worth(client, f"{FRAME} {asked} return commands.take_notice(q)")
    return found


def notice_told(client: Any, notice_id: str) -> bool:
    asked = f"q.a = {{ receiver = 'mail', id = '{notice_id}' }}"
    return worth(client, f"{FRAME} {asked} return commands.notice_told(q).told") is True


def test_a_receiver_gets_each_notice_once_and_keeps_what_it_took(client: Any) -> None:
    client.set("notices", "a stranger's")
    assert take(client) == {"found": False}
    worth(client, f"{FRAME} R.tell(q, 'a', {{}}) R.tell(q, 'b', {{}}) return 1")
    first = take(client)
    assert (first["found"], first["kind"], take(client)["id"]) == (True, "a", first["id"])
    assert take(client, "c2")["kind"] == "b"
    assert take(client, "c3") == {"found": False}
    assert take(client, "c3", idle_ms=0)["kind"] == "a"
    assert [notice_told(client, first["id"]), notice_told(client, first["id"])] == [True, False]
    assert take(client, "c2")["kind"] == "b"


def test_a_notice_that_was_trimmed_before_it_was_told_is_lost_once(client: Any) -> None:
    take(client)
    worth(client, f"{FRAME} R.tell(q, 'a', {{}}) return 1")
    taken = take(client)["id"]
    client.xdel("notices", taken)
    assert take(client) == {"found": False, "lost": taken}
    assert take(client) == {"found": False}


STORM = "limit = 2, storm_queues = 3, storm_ms = 1000"


def permit(client: Any, queue: str, run_id: str = "r", more: str = "") -> str:
    asked = f"q.a = {{ queue = '{queue}', run = '{run_id}', {STORM} {more} }}"
    return str(worth(client, f"{FRAME} {asked} return commands.permit(q).answer"))


def test_so_many_runs_are_permitted_and_a_queue_again(client: Any) -> None:
    assert [permit(client, "a"), permit(client, "b"), permit(client, "a")] == ["granted"] * 3
    client.delete("all:asked")
    assert permit(client, "c") == "concurrent_runs"
    assert (
        permit(client, "c", more=", gone = { { queue = 'a', run = 'other' }, { queue = 'x', run = 'r' } }")
        == "concurrent_runs"
    )
    assert permit(client, "c", more=", gone = { { queue = 'a', run = 'r' } }") == "granted"
    assert sorted(client.hkeys("all:runs")) == ["b", "c"]
    client.set("all:kill", "x")
    assert permit(client, "b") == "kill_switch"


def test_many_queues_at_once_trip_the_breaker(client: Any) -> None:
    client.zadd("all:asked", {"old": NOW_MS - 1001, "x": NOW_MS - 1000})
    assert permit(client, "a") == "granted"
    assert client.exists("all:breaker") == 0
    assert permit(client, "b") == "breaker"
    assert client.get("all:breaker") == f"{NOW_MS} 3 queues asked for a run within 1 s"
    assert permit(client, "a") == "breaker"
    assert client.xlen("audit") == 1

    def reset() -> str:
        asked = "q.a = { actor = 'ada', reason = 'why' }"
        return str(worth(client, f"{FRAME} {asked} return commands.reset_breaker(q).answer"))

    assert [reset(), reset()] == ["moved", "unchanged"]
    assert client.exists("all:asked", "all:breaker") == 0


def test_a_place_is_left_by_the_run_that_holds_it(client: Any) -> None:
    asked = "q.a = { queue = 'a', run = 'r' }"
    worth(client, f"{FRAME} {asked} return commands.hold_place(q)")

    def leave(run_id: str, queue: str = "a") -> bool:
        body = f"q.a = {{ queue = '{queue}', run = '{run_id}' }} return commands.leave_place(q).left"
        return worth(client, f"{FRAME} {body}") is True

    assert [leave("s"), leave("r", "b"), leave("r"), leave("r")] == [False, False, True, False]


def test_what_stands_over_all_queues_is_shown_whatever_was_written_over_it(client: Any) -> None:
    assert worth(client, f"{FRAME} return commands.all_queues(q)") == {
        "at": NOW_MS, "kill": "", "breaker": "", "holders": {}, "asked": {},
    }  # fmt: skip
    client.hset("all:runs", mapping={"a": "r@5", "b": "odd"})
    client.mset({"all:kill": "k", "all:breaker": "b"})
    shown = worth(client, f"{FRAME} return commands.all_queues(q)")
    assert (shown["kill"], shown["breaker"]) == ("k", "b")
    assert sorted((row["queue"], row["run"], row["since"]) for row in shown["holders"]) == [
        ("a", "r", 5),
        ("b", "odd", 0),
    ]


def test_the_switch_over_all_queues_is_written_down(client: Any) -> None:
    for on, value, what in (("true", f"{NOW_MS} ada: why", "kill_switch_on"), ("false", None, "kill_switch_off")):
        worth(client, f"{FRAME} q.a = {{ on = {on}, actor = 'ada', reason = 'why' }} return commands.kill_all(q)")
        assert client.get("all:kill") == value
        assert client.xrange("audit")[-1][1]["what"] == what


def waiting(client: Any, receiver: str = "mail") -> tuple[int, int]:
    """Give how many notices wait for a receiver, and since when the oldest does."""
    found = worth(client, f"{FRAME} q.a.receiver = '{receiver}' return commands.notices_waiting(q)")
    return found["waiting"], found["oldest_at"]


def test_what_a_receiver_was_not_told_of_waits_since_it_was_written(client: Any) -> None:
    assert waiting(client) == (0, 0)
    client.set("notices", "a stranger's")
    assert waiting(client) == (0, 0)
    take(client)
    assert (waiting(client), waiting(client, "another")) == ((0, 0), (0, 0))
    for at in (5, 7, 9):
        client.xadd("notices", {"kind": "k"}, id=f"{NOW_MS + at}-0")
    assert (waiting(client), waiting(client, "another")) == ((3, NOW_MS + 5), (0, 0))
    first = take(client)["id"]
    assert waiting(client) == (3, NOW_MS + 5)
    assert notice_told(client, first)
    assert waiting(client) == (2, NOW_MS + 7)
