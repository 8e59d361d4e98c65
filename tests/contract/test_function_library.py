"""The functions reach the server whatever it allows: loaded twice, flushed between calls, or forbidden altogether."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

from drill.children import Children
from drill.readiness import answers_ping
from drill.server import ServerKind, ServerOptions, find_server, server_arguments
from sluicegate import functions, keys
from sluicegate.__main__ import dispatch
from sluicegate.errors import OtherLibrary, StoreRejected
from sluicegate.settings import default_settings
from sluicegate.store import Store

PASSWORD = "a-client"

Restrict = Callable[[str], str]


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    """Give a plain client of an empty server."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as plain:
        plain.config_resetstat()
        yield plain


@pytest.fixture
def restricted(redis_url: str, client: Any) -> Iterator[Restrict]:
    """Return a function that makes a user with some commands taken away, and gives its address."""

    def made(without: str) -> str:
        client.execute_command(
            "ACL", "SETUSER", "limited", "reset", "on", f">{PASSWORD}", "~*", "+@all", *without.split()
        )
        return redis_url.replace("redis://", f"redis://limited:{PASSWORD}@")

    yield made
    client.execute_command("ACL", "DELUSER", "limited")


def init(store: Store) -> str:
    contract = default_settings().contract
    return store.init_queue(contract.for_redis(), contract.digest(), "ada", "a test").answer


def libraries(client: Any) -> list[str]:
    return [functions.LIBRARY for listed in client.function_list() if functions.LIBRARY in str(listed)]


def calls_of(client: Any, command: str) -> int:
    return int(client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"])


def test_the_library_has_room_for_ten_more_names(client: Any) -> None:
    # Lua takes 200 in one function, and those of a test come on top of the library's.
    names = ", ".join(f"spare_{number}" for number in range(10))
    assert client.eval(f"#!lua\n{functions.body()}\nlocal {names}\nreturn 'loads'", 0) == "loads"


def test_loading_twice_and_at_the_same_time_is_one_library(redis_url: str, client: Any) -> None:
    stores = [Store.connect(redis_url) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda store: store.load(), stores))
    stores[0].load()
    assert libraries(client) == [functions.LIBRARY]
    for store in stores:
        store.close()


def test_a_library_that_is_flushed_between_two_calls_is_loaded_again(redis_url: str, client: Any) -> None:
    store = Store.connect(redis_url)
    assert init(store) == "moved"
    client.function_flush()
    assert store.observe().gate.drain_state == "admit"
    client.function_flush()
    assert store.order("drain", "ada", "a test").answer == "moved"
    client.function_flush()
    assert store.gate_log(1)[0].to_state == "drain"
    assert libraries(client) == [functions.LIBRARY]
    store.close()


def test_a_client_that_never_loads_finds_what_another_loaded(redis_url: str, client: Any) -> None:
    owner, other = Store.connect(redis_url), Store.connect(redis_url)
    init(owner)
    loads = calls_of(client, "function|load")
    assert other.observe().gate.drain_state == "admit"
    assert calls_of(client, "function|load") == loads
    owner.close()
    other.close()


def older_library() -> str:
    """Give a library of the same name with other code: it knows no gate log."""
    registered = [line for line in functions.library().splitlines() if "_gate_log'" not in line]
    return "\n".join([*registered, ""])


@pytest.fixture
def outdated(redis_url: str, client: Any) -> str:
    """Return the address of a server with an open queue, under a library of the same name and other code."""
    store = Store.connect(redis_url)
    assert init(store) == "moved"
    assert store.loaded_library() == functions.digest_of(functions.library())
    store.close()
    client.function_load(older_library(), replace=True)
    return redis_url


def test_a_command_that_other_code_under_the_same_name_lacks_says_which_code_is_there_and_what_to_do(
    outdated: str,
) -> None:
    store = Store.connect(outdated)
    with pytest.raises(OtherLibrary) as said:
        store.gate_log()
    sentence, hint = str(said.value).splitlines()
    assert functions.digest_of(older_library()) in sentence
    assert functions.digest_of(functions.library()) in sentence
    assert "`sluicegate queue upgrade --as NAME --reason WHY`" in hint
    assert store.observe().gate.drain_state == "admit", "what it knows goes on"
    store.close()


def test_doctor_finds_other_code_and_upgrade_replaces_it_once_by_name(
    outdated: str, client: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    at = ("--redis-url", outdated)
    assert dispatch(["gate", "log", *at]) == 1
    assert "sluicegate queue upgrade" in capsys.readouterr().err.splitlines()[1]
    assert dispatch(["queue", "doctor", *at]) == 1
    assert "fix    library: The function library sluicegate_v2 has other code under the same name" in (
        capsys.readouterr().out
    )

    words = ["queue", "upgrade", "--as", "ada", "--reason", "rolled out", *at]
    assert dispatch(words) == 0
    was = functions.digest_of(older_library())
    assert f"it was {was}" in capsys.readouterr().out
    assert dispatch(words) == 0
    assert "already" in capsys.readouterr().out

    store = Store.connect(outdated)
    first, *_ = store.gate_log()
    assert (first.reason, first.actor, first.to_state) == ("library_replaced", "ada", "admit")
    assert first.note == f"{was} -> {functions.digest_of(functions.library())}: rolled out"
    assert [entry.reason for entry in store.gate_log()] == ["library_replaced", "init"]
    assert libraries(client) == [functions.LIBRARY]
    store.close()
    dispatch(["queue", "doctor", *at])
    assert "other code" not in capsys.readouterr().out


def test_an_upgrade_where_functions_are_forbidden_is_refused(restricted: Restrict) -> None:
    store = Store.connect(restricted("-function|load"))
    with pytest.raises(StoreRejected, match="permission"):
        store.replace_library("ada", "a test")
    store.close()


def test_an_upgrade_of_a_server_without_a_queue_writes_no_key(redis_url: str, client: Any) -> None:
    client.function_load(older_library(), replace=True)
    store = Store.connect(redis_url)
    assert store.replace_library("ada", "a test")[0] == functions.digest_of(older_library())
    assert client.keys("*") == []
    store.close()


FORBIDDEN = ["-function", "-function -fcall -fcall_ro", "-function|load"]


@pytest.mark.parametrize("without", FORBIDDEN)
@pytest.mark.parametrize("first", ["init", "observe"])
def test_where_functions_are_forbidden_the_same_source_runs_as_scripts(
    client: Any, restricted: Restrict, without: str, first: str
) -> None:
    store = Store.connect(restricted(without))
    if first == "observe":
        assert store.observe().gate.pin == "uninitialised"
    assert init(store) == "moved"

    for number in range(3):
        store.order("drain" if number % 2 else "reject", "ada", f"{number}")
    gate = store.observe().gate

    assert (gate.drain_state, gate.pin) == ("reject_new", "operator")
    assert len(store.gate_log()) == 4
    assert libraries(client) == []
    # Each command's source goes over the wire once; from then on its digest does.
    assert (calls_of(client, "eval"), calls_of(client, "evalsha")) == (4, 2 if first == "init" else 3)
    store.close()


def test_scripts_that_are_flushed_between_two_calls_are_sent_again(client: Any, restricted: Restrict) -> None:
    store = Store.connect(restricted("-function -fcall"))
    init(store)
    assert store.observe().gate.drain_state == "admit"
    client.script_flush()
    assert store.observe().gate.drain_state == "admit"
    store.close()


def test_functions_and_scripts_act_on_one_gate_alike(redis_url: str, restricted: Restrict) -> None:
    functional, scripted = Store.connect(redis_url), Store.connect(restricted("-function -fcall"))
    init(functional)
    assert scripted.order("hold", "ada", "by script").answer == "moved"
    assert functional.order("drain", "grace", "by function").answer == "moved"
    assert scripted.observe().gate == functional.observe().gate
    assert [entry.actor for entry in scripted.gate_log()] == ["grace", "ada", "ada"]
    functional.close()
    scripted.close()


def test_where_scripts_are_forbidden_as_well_the_server_says_so(restricted: Restrict) -> None:
    store = Store.connect(restricted("-@scripting"))
    with pytest.raises(StoreRejected, match="permission"):
        store.observe()
    store.close()


def test_a_queue_is_read_without_any_right_to_write_or_load(redis_url: str, client: Any, restricted: Restrict) -> None:
    owner = Store.connect(redis_url)
    init(owner)
    reader = Store.connect(restricted("-@write -function -fcall -eval -evalsha"), read_only=True)
    assert reader.observe().gate == owner.observe().gate
    with pytest.raises(StoreRejected):
        reader.order("drain", "ada", "must not work")
    assert client.get(keys.DRAIN_STATE) == "admit"
    owner.close()
    reader.close()


@pytest.mark.parametrize("kind", [ServerKind.REDIS, ServerKind.VALKEY], ids=str)
def test_a_server_that_knows_no_functions_runs_scripts(children: Children, tmp_path: Path, kind: ServerKind) -> None:
    program, unnamed = find_server(kind), ("--rename-command", "FUNCTION", "", "--rename-command", "FCALL", "")

    def arguments(port: int) -> tuple[str, ...]:
        return (*server_arguments(program.path, port, tmp_path, ServerOptions(kind=kind)), *unnamed)

    port = children.start_listening(f"plain-{kind}", arguments, answers_ping)
    store = Store.connect(f"redis://127.0.0.1:{port}/0")
    assert store.observe().gate.pin == "uninitialised"
    assert init(store) == "moved"
    assert store.observe().gate.drain_state == "admit"
    store.close()


def test_a_reader_calls_the_function_where_it_is_loaded_and_a_script_where_it_is_not(
    redis_url: str, client: Any
) -> None:
    reader, writer = Store.connect(redis_url, read_only=True), Store.connect(redis_url)
    assert reader.observe().gate.drain_state == "drain"
    assert (calls_of(client, "fcall_ro"), calls_of(client, "eval_ro")) == (1, 1)
    assert init(writer) == "moved"

    for _ in range(120):
        assert reader.observe().gate.drain_state == "admit"
    assert 10 < calls_of(client, "fcall_ro") < 30

    # A library that was made from other source has nothing under that name, whatever its own are.
    client.execute_command(
        "FUNCTION", "LOAD", "REPLACE", functions.library().replace(functions.digest_of(functions.body()), "other")
    )
    assert reader.observe().gate.drain_state == "admit"
    assert calls_of(client, "evalsha_ro") > 100
    for store in (reader, writer):
        store.close()


def test_a_reader_that_may_not_call_functions_runs_the_source_itself(
    redis_url: str, client: Any, restricted: Restrict
) -> None:
    writer, reader = Store.connect(redis_url), Store.connect(restricted("-fcall_ro"), read_only=True)
    assert init(writer) == "moved"
    for _ in range(3):
        assert reader.observe().gate.drain_state == "admit"
    assert (calls_of(client, "eval_ro"), calls_of(client, "evalsha_ro")) == (1, 2)
    for store in (reader, writer):
        store.close()
