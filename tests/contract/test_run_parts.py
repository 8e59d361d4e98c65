"""Runs and episodes: what their records hold and what forbids them, each part by itself on a real server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.function_values import value_of, worth

NOW_MS = 1_800_000_000_000
FRAME = (
    f"local q = {{ p = '', now = {NOW_MS}, us = {NOW_MS}000, counted = {{}}, lifetimes = {{}}, woken = 0, a = {{}},"
    " s = {"
    " classes = {}, cost_classes = {}, runs_per_hour = 3, timings = { run_cooldown_ms = 900, run_retention_ms = 5000,"
    " reject_return_ms = 60 } } }"
)


def test_a_run_and_an_episode_are_kept_as_the_contract_says_and_an_older_one_does_not(client: Any) -> None:
    assert worth(client, f"{FRAME} return R.retention(q)") == "5000"
    assert worth(client, f"{FRAME} q.s = nil return R.retention(q)") == str(90 * 86_400_000)
    assert worth(client, f"{FRAME} q.s.timings.run_retention_ms = nil return R.retention(q)") == str(90 * 86_400_000)
    assert worth(client, f"{FRAME} return retention_ms(q)") == 7 * 86_400_000
    assert worth(client, f"{FRAME} q.s.timings.episode_retention_ms = 5 return retention_ms(q)") == 5


def test_readers_get_a_run_without_what_somebody_wrote_over_its_numbers(client: Any) -> None:
    run = "{ step = '2', started_at = 'x', response = 'r' }"
    assert value_of(client, f"R.shown({run}, 'run1')") == {"id": "run1", "state": "", "step": "2"}
    whole = "{ step = '2', started_at = '3', ended_at = '4', state = 'running' }"
    assert value_of(client, f"R.shown({whole}, 'run1')") == {
        "id": "run1", "state": "running", "step": "2", "started_at": "3", "ended_at": "4",
    }  # fmt: skip


def test_a_fence_only_grows(client: Any) -> None:
    fences = "R.next_fence(q, {}), R.next_fence(q, { fence = '7' }), R.next_fence(q, { fence = digits(q.us + 4) })"
    assert worth(client, f"{FRAME} return {{ {fences} }}") == [f"{NOW_MS}000", f"{NOW_MS}000", f"{NOW_MS}005"]


def test_a_journal_s_line_names_what_there_is_to_name(client: Any) -> None:
    worth(client, f"{FRAME} R.journal(q, 'r', {{ phase = 'opened' }}) return 1")
    full = "{ seq = 3, verb = 'v', phase = 'p', actor = 'a', text = 't', detail = '[]' }"
    worth(client, f"{FRAME} R.journal(q, 'r', {full}) return 1")
    at = {"at": str(NOW_MS)}
    assert [fields for _, fields in client.xrange("run:r:journal")] == [
        {**at, "seq": "0", "verb": "", "phase": "opened", "actor": "", "text": "", "detail": "{}"},
        {**at, "seq": "3", "verb": "v", "phase": "p", "actor": "a", "text": "t", "detail": "[]"},
    ]


def test_a_new_run_has_its_record_and_one_without_an_id_gets_one(client: Any) -> None:
    bare = "{ id = '', runbook = 'rollback-and-audit', trigger = 'controller', actor = 'c', reason = 'r' }"
    run = worth(client, f"{FRAME} return R.create(q, {bare})")
    assert run == client.hgetall(f"run:audit-{NOW_MS}000")
    assert [run[name] for name in ("note", "digest", "episode", "owner", "state")] == ["", "", "", "", "running"]
    full = "{ id = 'r1', runbook = 'b', trigger = 'person', actor = 'a', reason = 'r', note = 'n', digest = 'd',"
    full += " episode = 'e' }"
    worth(client, f"{FRAME} return R.create(q, {full})")
    assert client.hmget("run:r1", "note", "digest", "episode", "fence") == ["n", "d", "e", f"{NOW_MS}000"]
    assert (client.get("lock:run"), client.zscore("runs:live", "r1"), client.zscore("runs:recent", "r1")) == (
        "r1",
        NOW_MS,
        NOW_MS,
    )


def counted(client: Any, body: str) -> dict[str, str]:
    """Run something, and give what it counted."""
    client.delete("counters")
    worth(client, f"{FRAME} {body} write_counts(q) return 1")
    found: dict[str, str] = client.hgetall("counters")
    return found


def test_a_step_s_end_is_counted_once_with_its_time(client: Any) -> None:
    client.hset("run:r", "step_at", str(NOW_MS - 40))
    run = f"local run = {{ id = 'r', verb = 'drain_by_class', step_at = '{NOW_MS - 40}' }}"
    twice = counted(client, f"{run} R.count_step(q, run, 'done') R.count_step(q, run, 'done')")
    assert twice == {"steps:drain_by_class:done": "1", "step_ms:drain_by_class": "40"}
    assert client.hexists("run:r", "step_at") is False
    assert counted(client, f"R.count_step(q, {{ id = 'r', verb = 'No verb', step_at = '{NOW_MS}' }}, 'done')") == {}
    assert counted(client, f"R.count_step(q, {{ id = 'r', step_at = '{NOW_MS}' }}, 'done')") == {}
    assert counted(client, "R.count_step(q, { id = 'r', verb = 'drain', step_at = 'x' }, 'done')") == {}
    ahead = counted(client, f"R.count_step(q, {{ id = 'r', verb = 'drain', step_at = '{NOW_MS + 9}' }}, 'done')")
    assert ahead == {"steps:drain:done": "1", "step_ms:drain": "0"}


def lines(client: Any) -> list[tuple[str, str, str]]:
    return [(line["phase"], line["actor"], line["text"]) for _, line in client.xrange("run:r:journal")]


def test_a_revoked_run_says_what_its_next_owner_has_to_do(client: Any) -> None:
    run = "{ id = 'r', verb = 'drain', step = '1', fence = '5' }"
    worth(
        client,
        f"{FRAME} R.revoke(q, {run}, 'rolling_back', 'canary_failed', {{ actor = 'a', reason = 'why' }}) return 1",
    )
    assert client.hgetall("run:r") == {
        "fence": f"{NOW_MS}000", "state": "rolling_back", "rollback_reason": "canary_failed", "owner": "",
        "lease_end": "0",
    }  # fmt: skip
    worth(client, f"{FRAME} R.revoke(q, {run}, 's', 'manual', {{ actor = 'a', reason = 'why', note = 'n' }}) return 1")
    assert lines(client) == [("rolled_back", "a", "canary_failed: why"), ("rolled_back", "a", "manual: n")]


@pytest.mark.parametrize(("state", "step"), [("succeeded", "done"), ("aborted", "interrupted")])
def test_a_run_s_end_frees_what_it_held_and_is_counted(client: Any, state: str, step: str) -> None:
    client.set("lock:run", "r")
    client.zadd("runs:live", {"r": 1})
    client.set("approval:r", "x")
    run = f"{{ id = 'r', runbook = 'drain-and-recover', verb = 'drain', step_at = '{NOW_MS}',"
    run += f" started_at = '{NOW_MS - 70}' }}"
    seen = counted(client, f"R.finish(q, {run}, '{state}', {{ actor = 'a', reason = 'why' }})")
    assert seen == {f"runs:{state}": "1", f"run_ms:{state}": "70", f"steps:drain:{step}": "1", "step_ms:drain": "0"}
    assert client.exists("lock:run", "runs:live") == 0
    assert client.hmget("run:r", "state", "ended_by", "ended_why", "owner") == [state, "a", "why", ""]
    assert client.get("cooldown:drain-and-recover") == str(NOW_MS + 900)
    assert all(0 < client.pttl(key) <= 5000 for key in ("run:r", "run:r:journal", "approval:r"))
    assert 0 < client.pttl("cooldown:drain-and-recover") <= 900
    assert lines(client) == [("ended", "a", f"{state}: why")]
    other = "R.finish(q, { id = 'r', runbook = 'b', started_at = 'x' }, 'failed',"
    other += " { actor = 'a', reason = 'why', note = 'n' })"
    assert counted(client, other) == {"runs:failed": "1", "run_ms:failed": "0"}
    assert client.hget("run:r", "ended_why") == "n"
    assert lines(client)[-1] == ("ended", "a", "failed: n")


def forbidden(client: Any, more: str = "") -> str | None:
    found: str | None = worth(client, f"{FRAME} {more} return R.forbidden(q, 'b') or cjson.null")
    return found


def test_a_kill_switch_a_cooldown_and_many_runs_forbid_one(client: Any) -> None:
    assert forbidden(client) is None
    client.zadd("runs:recent", {"1": NOW_MS - 3_600_001, "2": NOW_MS - 3_600_000, "3": NOW_MS})
    assert forbidden(client) is None
    client.zadd("runs:recent", {"4": NOW_MS})
    assert forbidden(client) == "runs_per_hour"
    client.set("cooldown:b", str(NOW_MS))
    assert forbidden(client) == "runs_per_hour"
    client.set("cooldown:b", str(NOW_MS + 1))
    assert forbidden(client) == "cooldown"
    client.set("kill", "")
    assert forbidden(client) == "kill_switch"


def test_what_was_asked_apart_forbids_one_too(client: Any) -> None:
    permits = ("ask", "granted", "storm")
    assert [forbidden(client, f"q.a.permit = '{permit}'") for permit in permits] == [None, None, "storm"]


def test_limits_that_an_older_contract_does_not_say_have_their_values(client: Any) -> None:
    assert worth(client, f"{FRAME} return R.limits(q)") == {"limit": 2, "storm_queues": 5, "storm_ms": 300_000}
    said = "q.s.concurrent_runs, q.s.storm_queues, q.s.timings.storm_window_ms = 7, 8, 9"
    assert worth(client, f"{FRAME} {said} return R.limits(q)") == {"limit": 7, "storm_queues": 8, "storm_ms": 9}


def test_a_run_is_owned_by_whoever_holds_its_fence(client: Any) -> None:
    def fenced(run: str) -> bool:
        return worth(client, f"{FRAME} q.a = {{ fence = '5', run = 'r' }} return R.fenced(q, {run}) == true") is True

    assert fenced("{ id = 'r', fence = '5' }")
    assert not fenced("{ id = 'r', fence = '6' }")
    assert not fenced("{ id = 's', fence = '5' }")
    assert not fenced("nil")


def beside(client: Any, run_id: str) -> str | None:
    found: str | None = worth(
        client, f"{FRAME} local run = R.beside_of(q, '{run_id}') return run and run.id or cjson.null"
    )
    return found


def test_a_run_beside_the_lock_is_live_while_its_place_names_it(client: Any) -> None:
    for run_id, state in (("r1", "running"), ("r2", "running"), ("r3", "aborted")):
        client.hset(f"run:{run_id}", mapping={"runbook": f"book-{run_id}", "state": state})
        client.hset("lock:beside", f"book-{run_id}", run_id)
    client.hset("lock:beside", "book-r2", "another")
    client.hset("run:r4", "state", "running")
    assert [beside(client, run_id) for run_id in ("r1", "r2", "r3", "r4", "gone")] == ["r1", None, None, None, None]
    live = worth(client, f"{FRAME} local n = {{}} for i, r in ipairs(R.besides(q)) do n[i] = r.id end return n")
    assert live == ["r1"]
    by_book = "R.beside(q, 'book-r1').id, R.beside(q, 'book-r3') == nil, R.beside(q, 'none') == nil"
    assert worth(client, f"{FRAME} return {{ {by_book} }}") == ["r1", True, True]
    client.delete("lock:beside")
    client.set("lock:beside", "a stranger's")
    nobody = "R.beside(q, 'book-r1') == nil, R.beside_of(q, 'r1') == nil, #R.besides(q)"
    assert worth(client, f"{FRAME} return {{ {nobody} }}") == [
        True, True, 0,
    ]  # fmt: skip


def test_runs_beside_are_shown_in_one_order_and_end_together(client: Any) -> None:
    for run_id in ("r2", "r1"):
        book = f"{{ id = '{run_id}', runbook = 'book-{run_id}', trigger = 't', actor = 'a', reason = 'r' }}"
        worth(client, f"{FRAME} R.create_beside(q, {book}) return 1")
    assert worth(client, f"{FRAME} local b = R.besides(q) return {{ b[1].id, b[2].id }}") == ["r1", "r2"]
    assert client.zrange("runs:beside", 0, -1) == ["r1", "r2"]
    client.set("lock:run", "held")
    assert worth(client, f"{FRAME} q.s = nil R.end_besides(q, 'aborted', {{ actor = 'a', reason = 'r' }}) return 1")
    assert client.hlen("lock:beside") == 2
    worth(client, f"{FRAME} R.end_besides(q, 'aborted', {{ actor = 'a', reason = 'r' }}) return 1")
    assert (client.exists("lock:beside"), client.get("lock:run")) == (0, "held")


def heard(client: Any, handle: str, starts_at: int = 0, ends_at: int = 0) -> dict[str, Any]:
    """Let a firing be heard of the one episode there is, by fire(), or its end, by resolve()."""
    alert = f"{{ starts_at = {starts_at}, ends_at = {ends_at}, name = 'n', runbook = 'b', labels = '{{}}' }}"
    answer: dict[str, Any] = worth(client, f"{FRAME} return {handle}(q, 'e', hash_of('episode:e'), {alert})")
    return answer


def test_a_firing_opens_an_episode_and_its_repeats_touch_it(client: Any) -> None:
    assert heard(client, "fire", 100) == {"id": "e", "number": 1, "state": "open", "new": True}
    assert client.hmget("episode:e", "deliveries", "ends_at", "opened_at") == ["1", "0", str(NOW_MS)]
    client.delete("episodes:open")
    assert heard(client, "fire", 160) == {"id": "e", "number": 1, "state": "open", "new": False}
    assert client.hget("episode:e", "deliveries") == "2"
    assert client.zscore("episodes:open", "e") == NOW_MS
    assert heard(client, "fire", 161) == {"id": "e", "number": 2, "state": "open", "new": True}
    client.hset("episode:e", "deliveries", "x")
    heard(client, "fire", 161)
    assert client.hget("episode:e", "deliveries") == "1"


def test_an_episode_that_has_ended_begins_again_only_after_its_end(client: Any) -> None:
    heard(client, "fire", 100)
    assert heard(client, "resolve", ends_at=99) == {"id": "e", "number": 1, "state": "open", "new": False}
    assert client.zscore("episodes:open", "e") == NOW_MS
    assert heard(client, "resolve", ends_at=100) == {"id": "e", "number": 1, "state": "closed", "new": False}
    assert client.zscore("episodes:open", "e") is None
    assert heard(client, "resolve", ends_at=50)["state"] == "closed"
    assert client.hget("episode:e", "ends_at") == "100"
    assert heard(client, "fire", 100) == {"id": "e", "number": 1, "state": "closed", "new": False}
    assert heard(client, "fire", 101) == {"id": "e", "number": 2, "state": "open", "new": True}


def test_an_end_that_comes_before_its_firing_is_kept(client: Any) -> None:
    assert heard(client, "resolve", ends_at=100) == {"id": "e", "number": 0, "state": "closed", "new": False}
    assert heard(client, "fire", 100) == {"id": "e", "number": 0, "state": "closed", "new": False}
    assert heard(client, "fire", 101)["new"] is True


def test_damaged_times_of_an_episode_read_as_none(client: Any) -> None:
    for state in ("closed", "open"):
        client.hset("episode:e", mapping={"state": state, "starts_at": "x", "ends_at": "x", "number": "x"})
        assert heard(client, "fire", 61)["number"] == 1
        client.hset("episode:e", mapping={"state": state, "starts_at": "x", "ends_at": "x", "number": "x"})
        assert heard(client, "resolve", ends_at=5) == {"id": "e", "number": 0, "state": "closed", "new": False}
        assert client.hget("episode:e", "ends_at") == "5"


def test_only_open_episodes_are_shown_and_looked_at(client: Any) -> None:
    client.hset("episode:a", "state", "open")
    client.hset("episode:b", "state", "closed")
    client.zadd("episodes:open", {"a": 1, "b": 2, "gone": 3})
    assert worth(client, f"{FRAME} return commands.episodes(q).episodes") == [{"id": "a", "state": "open"}]

    def looked(episode: str, outcome: str, run: str) -> bool:
        asked = f"q.a = {{ looks = {{ {{ id = '{episode}', outcome = '{outcome}', run = '{run}' }} }} }}"
        changed = worth(client, f"{FRAME} {asked} return commands.episodes_looked(q).changed")
        assert changed in ({}, [episode])
        return bool(changed)

    looks = (("waiting", ""), ("waiting", ""), ("waiting", "r"), ("other", "r"))
    assert [looked("a", outcome, run) for outcome, run in looks] == [
        True, False, True, True,
    ]  # fmt: skip
    assert not looked("b", "waiting", "")
    assert client.hgetall("episode:b") == {"state": "closed"}


def test_the_reconcile_log_is_read_by_kind_or_whole(client: Any) -> None:
    for kind in ("a", "b", "a"):
        client.xadd("reconcile:log", {"at": "1", "kind": kind})

    def kinds(asked: str) -> list[str]:
        rows = worth(client, f"{FRAME} q.a = {asked} return commands.reconcile_log(q).entries")
        return [row["kind"] for row in rows] if rows else []

    assert kinds("{}") == kinds("{ kind = '' }") == ["a", "b", "a"]
    assert kinds("{ kind = 'b' }") == ["b"]
    assert kinds("{ limit = 2 }") == ["a", "b"]


def test_without_settings_nothing_is_notified(client: Any) -> None:
    assert worth(client, f"{FRAME} q.s = nil return commands.notify(q).event") == ""
    assert client.keys() == []


def test_a_notification_handles_each_alert_by_its_status_and_no_time_to_come(client: Any) -> None:
    def notified(status: str, starts_at: int, ends_at: int) -> list[Any]:
        alert = f"{{ status = '{status}', fingerprint = 'f', starts_at = {starts_at}, ends_at = {ends_at},"
        alert += " name = 'n', runbook = 'b', labels = '{}' }"
        asked = f"q.a = {{ source = 's', group = 'g', alerts = {{ {alert} }} }}"
        found: list[Any] = worth(client, f"{FRAME} {asked} return commands.notify(q).episodes")
        return found

    assert notified("firing", NOW_MS + 99, 0)[0]["state"] == "open"
    assert client.hget("episode:s:f", "starts_at") == str(NOW_MS)
    assert client.pttl("episode:s:f") > 0
    client.zadd("episodes:open", {"old": NOW_MS - 7 * 86_400_000, "older": 1})
    assert notified("resolved", 0, NOW_MS + 99)[0]["state"] == "closed"
    assert client.hget("episode:s:f", "ends_at") == str(NOW_MS)
    assert client.zcard("episodes:open") == 0
    assert client.xlen("inbox") == 2


def test_a_repeat_touches_its_episode_and_renews_its_life_now_and_then(client: Any) -> None:
    alert = (
        "{ status = 'firing', fingerprint = 'f', starts_at = 1, ends_at = 0, name = 'n', runbook = 'b', labels = '' }"
    )
    asked = f"q.s.timings.episode_retention_ms = 100000 q.a = {{ source = 's', group = 'g', alerts = {{ {alert} }} }}"

    def again(touched_at: int | None) -> tuple[bool, bool]:
        """Give whether the episode is new, and whether its life was renewed."""
        if touched_at is not None:
            client.hset("episode:s:f", "touched_at", touched_at)
            client.persist("episode:s:f")
        episode = worth(client, f"{FRAME} {asked} return commands.notify(q).episodes")[0]
        return episode["new"], client.pttl("episode:s:f") > 0

    assert again(None) == (True, True)
    assert [again(NOW_MS - 1000), again(NOW_MS - 1001)] == [(False, False), (False, True)]
    assert client.hget("episode:s:f", "deliveries") == "3"


def test_failures_are_read_from_an_offset_up_to_a_limit(client: Any) -> None:
    client.rpush("failed:day", *range(1005))

    def read(more: str) -> list[str]:
        found: list[str] = worth(client, f"{FRAME} q.a = {{ date = 'day' {more} }} return commands.failures(q).lines")
        return found

    assert read(", offset = 2, limit = 3") == ["2", "3", "4"]
    assert [len(read("")), len(read(", limit = 2000")), read("")[0]] == [1000, 1000, "0"]
