"""The small parts that all functions are made of, each by itself on a real server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.function_values import value_of, worth

# A call's frame, with what a test needs of it.
FRAME = "local q = { p = '', counted = {}, lifetimes = {}, woken = 0, s = { classes = { known = {} } } }"


def contract_is(client: Any, text: str) -> bool:
    client.hset("queue:settings", mapping={"digest": "d", "contract": text})
    return value_of(client, "settings_of('') ~= nil") is True


def test_only_a_whole_contract_is_taken_for_settings(client: Any) -> None:
    whole = '{"classes": {}, "cost_classes": {}, "thresholds": {}, "timings": {}, "ramp_percents": {}}'
    assert value_of(client, "settings_of('') == nil") is True
    assert contract_is(client, whole)
    assert not contract_is(client, "no JSON")
    assert not contract_is(client, "5")
    assert not contract_is(client, whole.replace('"timings": {}', '"timings": 3'))
    client.set("queue:settings", "a stranger's")
    assert value_of(client, "settings_of('') == nil") is True


def test_settings_are_parsed_once_a_digest(client: Any) -> None:
    assert contract_is(
        client, '{"classes": {}, "cost_classes": {}, "thresholds": {}, "timings": {}, "ramp_percents": {}}'
    )
    other = "local first = settings_of('') redis.call('HSET', 'queue:settings', 'digest', 'e')"
    assert worth(client, f"{other} return {{ first == settings_of(''), settings_of('') == settings_of('') }}") == [
        False,
        True,
    ]


def test_a_call_knows_the_epoch_that_its_caller_has_seen(client: Any) -> None:
    assert value_of(client, "{ open_call({ '', '7' }).seen, open_call({ '', '' }).seen, open_call({ '' }).seen }") == [
        7,
        0,
        0,
    ]


def test_what_is_of_another_type_reads_as_nothing(client: Any) -> None:
    client.set("text", "1")
    client.hset("hash", "a", "1")
    assert value_of(client, "{ text_of('text'), text_of('hash') or 'none', text_of('gone') or 'none' }") == [
        "1",
        "none",
        "none",
    ]
    assert value_of(client, "hash_of('hash')") == {"a": "1"}
    assert value_of(client, "{ next(hash_of('text')) or 'none', next(hash_of('gone')) or 'none' }") == ["none", "none"]
    assert value_of(client, "#rows_of('LRANGE', 'text', 0, -1)") == 0
    assert value_of(client, "rows_of('HKEYS', 'hash')") == ["a"]
    assert value_of(client, "#rows_of('GET', 'gone')") == 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("'0'", 0), ("'17'", 17), ("'9007199254740991'", 9007199254740991), ("'12345678901234567'", None),
        ("'0x10'", None), ("'nan'", None), ("''", None), ("'-1'", None), ("'1.5'", None), ("nil", None), ("5", None),
    ],
)  # fmt: skip
def test_a_whole_number_is_what_this_library_writes(client: Any, text: str, number: int | None) -> None:
    assert value_of(client, f"whole_number({text}) == {number or ('nil' if number is None else 0)}") is True


def test_a_record_of_another_type_is_put_anew_and_any_other_error_is_one(client: Any) -> None:
    client.set("k", "a stranger's")
    assert value_of(client, "put('HSET', 'k', 'a', '1')") == 1
    assert client.hgetall("k") == {"a": "1"}
    client.zadd("z", {"m": 1})
    assert value_of(client, "(pcall(put, 'ZADD', 'z', 'no number', 'm'))") is False
    assert client.zscore("z", "m") == 1


def test_an_entry_without_its_fields_or_numbers_is_not_of_this_library(client: Any) -> None:
    client.xadd("log", {"at": "1", "kind": "a"}, id="1-1")
    client.xadd("log", {"at": "no number", "kind": "b"}, id="1-2")
    client.xadd("log", {"at": "2", "other": "c"}, id="1-3")
    client.xadd("log", {"at": "3", "kind": "d", "more": "x"}, id="1-4")
    entries = value_of(client, "entries_of({ 'at', 'kind' }, { 'at' }, 'XRANGE', 'log', '-', '+')")
    assert entries == [{"id": "1-1", "at": "1", "kind": "a"}, {"id": "1-4", "at": "3", "kind": "d", "more": "x"}]
    # The first that is missing counts, whatever the others are.
    assert value_of(client, "#entries_of({ 'kind', 'at' }, {}, 'XRANGE', 'log', '-', '+')") == 3
    assert value_of(client, "#entries_of({}, { 'gone', 'at' }, 'XRANGE', 'log', '-', '+')") == 0


def test_what_is_empty_is_none(client: Any) -> None:
    assert value_of(client, "{ none('') == nil, none(nil) == nil, none('a') }") == [True, True, "a"]


def test_counts_are_added_up_and_written_once_with_their_lifetime(client: Any) -> None:
    counted = "count(q, 'a') count(q, 'a') count(q, 'b', 5) count_class(q, 'known', 'a') count_class(q, 'odd', 'a', 2)"
    assert worth(client, f"{FRAME} {counted} q.lifetimes.counters = 5000 write_counts(q) return next(q.counted) == nil")
    assert client.hgetall("counters") == {"a": "2", "b": "5"}
    assert client.hgetall("counters:known") == {"a": "1"}
    assert client.hgetall("counters:other") == {"a": "2"}
    assert 0 < client.pttl("counters") <= 5000
    assert client.pttl("counters:known") == -1


def woken(client: Any, many: int) -> int:
    """Give how many tokens there are for workers that wait, after so many reasons to wake them."""
    assert worth(client, f"{FRAME} q.woken = {many} write_wake(q) return q.woken") == 0
    return int(client.llen("queue:wake"))


def test_a_token_is_there_for_each_that_may_wake_up_to_sixteen(client: Any) -> None:
    assert [woken(client, many) for many in (0, 2, 3, 14, 1)] == [0, 2, 5, 16, 16]
    client.set("queue:wake", "a stranger's")
    assert woken(client, 2) == 2


def test_a_date_is_that_of_utc_in_every_month_and_year(client: Any) -> None:
    days = [
        datetime(year, month, day, tzinfo=UTC)
        for year in (1970, 1999, 2000, 2023, 2024, 2100)
        for month in range(1, 13)
        for day in (1, 28)
    ]
    days += [datetime(2024, 2, 29, tzinfo=UTC), datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC)]
    instants = ", ".join(str(int(day.timestamp() * 1000)) for day in days)
    dates = worth(client, f"local d = {{}} for i, ms in ipairs({{ {instants} }}) do d[i] = utc_date(ms) end return d")
    assert dates == [f"{day:%Y-%m-%d}" for day in days]


def test_the_indexes_of_a_hot_call_are_written_in_the_order_of_the_writes(client: Any) -> None:
    writes = "index(q, 'ZADD', 'k', 1, 'a') index(q, 'ZADD', 'k', 2, 'b') index(q, 'ZREM', 'k', 'a')"
    writes += " index(q, 'RPUSH', 'l', 'x') index(q, 'ZADD', 'k', 3, 'c')"
    gathered = f"{FRAME} q.gathered = {{}} {writes} local before = redis.call('EXISTS', 'l') write_indexes(q)"
    assert worth(client, f"{gathered} return {{ before, next(q.gathered) == nil }}") == [0, True]
    assert client.zrange("k", 0, -1, withscores=True) == [("b", 2.0), ("c", 3.0)]
    assert client.lrange("l", 0, -1) == ["x"]


def test_other_calls_write_their_indexes_at_once(client: Any) -> None:
    writes = "index(q, 'ZADD', 'k', 1800057300123, 'a') index(q, 'RPUSH', 'l', 'x')"
    seen: Any = worth(client, f"{FRAME} {writes} write_indexes(q) return redis.call('EXISTS', 'k', 'l')")
    assert (seen, client.zscore("k", "a")) == (2, 1800057300123)


@pytest.mark.parametrize(
    ("listed", "taken", "left"),
    [
        ("a b c", "a b", "c"),
        ("a b c", "b a", "c"),
        ("x a b y", "a b", "x y"),
        ("a b x c", "a c", "b x"),
        ("a a b", "a", "a b"),
        ("a b", "c", "a b"),
        ("", "a", ""),
    ],
)
def test_the_first_of_each_that_was_taken_goes_from_the_list_for_people(
    client: Any, listed: str, taken: str, left: str
) -> None:
    if listed:
        client.rpush("list", *listed.split())
    words = ", ".join(f"1, '{word}'" for word in taken.split())
    worth(client, f"remove_listed('list', {{ {words} }}) return 1")
    assert client.lrange("list", 0, -1) == left.split()


def test_an_index_of_another_type_is_an_error_and_keeps_no_other_from_being_written(client: Any) -> None:
    for number in range(6):
        client.set("wrong", "x")
        gathered = ", ".join(f"['i{n}'] = {{ command = 'ZADD', words = {{ '1', 'm' }} }}" for n in range(number))
        wrong = "wrong = { command = 'ZADD', words = { '1', 'm' } }"
        frame = f"local q = {{ gathered = {{ {wrong}, {gathered} }} }}"
        said = worth(
            client,
            f"{frame} local whole, why = pcall(write_indexes, q) "
            "return { whole, type(why) == 'table' and why.err or why }",
        )
        assert said[0] is False
        assert "WRONGTYPE" in said[1]
        assert client.exists(*[f"i{n}" for n in range(number)]) == number if number else True


def test_a_command_that_ends_in_an_error_answers_with_it(client: Any) -> None:
    words = "{ '', '0', 'queue:no-such' }"
    said = worth(
        client,
        f"local whole, why = pcall(answer_list, function() error('no such') end, {words}) "
        "return { whole, string.find(why, 'no such') ~= nil }",
    )
    assert said == [False, True]


def test_no_more_is_kept_between_calls_than_of_64_queues(client: Any) -> None:
    body = (
        "local kept, most = { by = {}, n = 0 }, 0 for turn = 1, 3 do for n = 1, 100 do keep(kept, n, turn)"
        " local held = 0 for _ in pairs(kept.by) do held = held + 1 end"
        " most = math.max(most, held) if held ~= kept.n or kept.by[n] ~= turn then error('lost') end end end"
        " keep(kept, 100, 7) return { most, kept.by[100] }"
    )
    assert worth(client, body) == [64, 7]


def test_no_more_is_kept_than_there_is_room_for_and_each_once(client: Any) -> None:
    kept = "local kept = { by = {}, n = 0 } for i = 1, 100 do keep(kept, 'a', i) end"
    assert worth(client, f"{kept} return {{ kept.n, kept.by.a }}") == [1, 100]
    full = f"{kept} for i = 2, MOST_KEPT do keep(kept, 'k' .. i, i) end"
    asked = "kept.n == MOST_KEPT, kept.by.a, keep(kept, 'k2', 7), kept.n == MOST_KEPT"
    assert worth(client, f"{full} return {{ {asked} }}") == [True, 100, 7, True]
    assert worth(client, f"{full} keep(kept, 'one more', 1) return {{ kept.n, kept.by.a == nil }}") == [1, True]


@pytest.mark.parametrize(("listed", "removals"), [(0, 100_000), (1000, 100), (20_000, 5)])
def test_the_longer_the_list_for_people_the_fewer_jobs_a_call_takes_from_within_it(
    client: Any, listed: int, removals: int
) -> None:
    if listed:
        client.rpush("queue:pending", *["x"] * listed)
    q = "{ p = '', s = { max_pending = 20000, dispatch = 'fifo' } }"
    assert value_of(client, f"J.removals({q})") == removals
    kept_nowhere = q.replace("20000", "20001")
    assert value_of(client, f"J.removals({kept_nowhere})") == 100_000
