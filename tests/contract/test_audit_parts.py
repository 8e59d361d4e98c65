"""How the audit log is written and trimmed, at its bounds, on a real server."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.function_values import worth
from tests.gate_frame import FRAME, NOW_MS

KEPT_MS = 1000
MOST, BATCH = 20_000, 200


def write(client: Any) -> None:
    worth(client, f"{FRAME} A.write(q, 'k', 'who', 'ada') return 1")


def entries(client: Any) -> list[dict[str, str]]:
    return [fields for _, fields in client.xrange("audit")]


def put(client: Any, numbers: range, at: int | str = NOW_MS, **head: Any) -> None:
    """Write entries with these numbers, of one instant, and the chain's two ends."""
    client.delete("audit", "audit:head")
    for number in numbers:
        client.xadd("audit", {"n": number, "at": at, "hash": f"h{number}"})
    client.hset("audit:head", mapping={"n": numbers[-1], "hash": f"h{numbers[-1]}", "base_n": 0} | head)


def chained(before: str, *words: str) -> str:
    text = before + "".join(f"{len(word)}:{word}" for word in words)
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def test_an_entry_is_chained_to_the_one_before(client: Any) -> None:
    write(client)
    write(client)
    first, second = entries(client)
    own = [("n", "1"), ("at", str(NOW_MS)), ("kind", "k"), ("who", "ada")]
    assert list(first.items()) == [*own, ("hash", chained("", *[word for pair in own for word in pair]))]
    own[0] = ("n", "2")
    assert second["hash"] == chained(first["hash"], *[word for pair in own for word in pair])
    assert client.hgetall("audit:head") == {"n": "2", "hash": second["hash"]}


def test_a_damaged_head_begins_anew(client: Any) -> None:
    client.hset("audit:head", mapping={"n": "x", "base_n": "x"})
    write(client)
    client.delete("audit:head")
    client.set("audit:head", "a stranger's")
    write(client)
    assert [entry["n"] for entry in entries(client)] == ["1", "1"]


@pytest.mark.parametrize(("before", "first", "base"), [(MOST + BATCH - 1, "190", "0"), (MOST + BATCH, "202", "201")])
def test_above_its_number_a_batch_goes_down_to_it(client: Any, before: int, first: str, base: str) -> None:
    put(client, range(190, 270), n=before)
    write(client)
    assert entries(client)[0]["n"] == first
    assert client.hget("audit:head", "base_n") == base
    assert client.hget("audit:head", "base_hash") == (f"h{base}" if base != "0" else None)


def test_what_has_gone_counts_no_more(client: Any) -> None:
    put(client, range(190, 270), n=MOST + BATCH, base_n=1)
    write(client)
    assert entries(client)[0]["n"] == "190"


def test_a_log_of_which_nothing_can_go_is_left(client: Any) -> None:
    put(client, range(1, 2), n=MOST + BATCH)
    client.delete("audit")
    write(client)
    assert len(entries(client)) == 1
    assert client.hget("audit:head", "base_hash") is None


def test_no_more_than_a_batch_goes_at_once(client: Any) -> None:
    put(client, range(1, 240), n=MOST + 10 * BATCH)
    write(client)
    assert (entries(client)[0]["n"], client.hget("audit:head", "base_n")) == (str(BATCH + 1), str(BATCH))


@pytest.mark.parametrize(
    ("at", "left"), [(NOW_MS - KEPT_MS - 1, ["6"]), (NOW_MS - KEPT_MS, ["1", "2", "3", "4", "5", "6"]), ("x", ["6"])]
)
def test_what_is_too_old_goes_as_well(client: Any, at: int | str, left: list[str]) -> None:
    put(client, range(1, 6), at)
    write(client)
    assert [entry["n"] for entry in entries(client)] == left


def test_only_what_is_too_old_goes(client: Any) -> None:
    put(client, range(1, 3), NOW_MS - KEPT_MS - 1)
    for number, at in ((3, NOW_MS - KEPT_MS), (4, NOW_MS - KEPT_MS - 1)):
        client.xadd("audit", {"n": number, "at": at, "hash": f"h{number}"})
    write(client)
    assert entries(client)[0]["n"] == "3"
    assert client.hmget("audit:head", "base_n", "base_hash") == ["2", "h2"]


def test_an_entry_that_names_neither_number_nor_hash_goes_too(client: Any) -> None:
    put(client, range(1, 3), NOW_MS)
    client.delete("audit")
    client.xadd("audit", {"kind": "a stranger's"})
    write(client)
    assert client.hmget("audit:head", "base_n", "base_hash") == ["0", ""]
    assert len(entries(client)) == 1


def test_the_log_is_read_from_its_beginning_or_after_an_entry(client: Any) -> None:
    def read(after: str) -> Any:
        return worth(client, f"{FRAME} q.a = {{ after = '{after}', limit = 10 }} return commands.audit(q)")

    assert read("-") == {"entries": {}, "head": {"n": "0", "hash": "", "base_n": "0", "base_hash": ""}}
    put(client, range(1, 3), base_n=7, base_hash="b")
    found = read("-")
    assert [entry[1][1] for entry in found["entries"]] == ["1", "2"]
    assert found["head"] == {"n": "2", "hash": "h2", "base_n": "7", "base_hash": "b"}
    assert [entry[1][1] for entry in read(found["entries"][0][0])["entries"]] == ["2"]
