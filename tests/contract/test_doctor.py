"""`queue doctor` on real servers: what it finds, what it can't see, and what it says can be lost."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from drill.server import AppendFsync, ServerKind, ServerOptions
from sluicegate.__main__ import dispatch
from sluicegate.cli_doctor import look
from sluicegate.doctor import Seen, examine
from sluicegate.errors import StoreUnavailable
from sluicegate.server_findings import Finding, Level, losses, unsound
from sluicegate.settings import Settings, load
from sluicegate.store import Store
from tests.queues import OpenQueue, OpenQueueFunction, wait_until
from tests.servers import MakeServer


def settings_for(queue: OpenQueue, folder: Path, **changes: Any) -> Path:
    body = {"redis_url": queue.url, "contract": queue.contract.model_dump(mode="json"), **changes}
    path = folder / "sluicegate.yaml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps(body))), encoding="utf-8")
    return path


def seen_on(url: str, settings: Settings | None = None, name: str = "default", *, own_file: bool = True) -> Seen:
    store = Store.connect(url, name, read_only=True)
    try:
        return look(store, settings or load(None, {}), own_file=own_file)
    finally:
        store.close()


def named(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def level(seen: Seen, name: str) -> Level | None:
    found = named(examine(seen)).get(name)
    return found.level if found is not None else None


def test_a_server_without_an_append_only_file_must_be_fixed(
    queue: OpenQueue, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = settings_for(queue, tmp_path)
    assert dispatch(["queue", "doctor", "--settings", str(path), "--json"]) == 1
    body = json.loads(capsys.readouterr().out)
    levels = {finding["name"]: finding["level"] for finding in body["findings"]}
    assert levels == {
        "appendonly": "fix",
        "save": "note",
        "maxmemory-policy": "ok",
        "maxmemory": "note",
        "role": "ok",
        "library": "ok",
        "settings": "ok",
        "gate": "note",
        "effects": "warn",
        "keys": "ok",
        "clock": levels["clock"],
    }
    assert {loss["happens"]: loss["lost"] for loss in body["losses"]}["the server process is killed"] == "everything"
    assert dispatch(["queue", "doctor", "--settings", str(path)]) == 1
    text = capsys.readouterr().out
    assert "fix    appendonly: appendonly is off" in text
    assert "warn   effects: Class send-mail is unsafe to repeat" in text
    assert "what can be lost" in text


@pytest.mark.parametrize("kind", [ServerKind.REDIS, ServerKind.VALKEY], ids=str)
@pytest.mark.parametrize(
    ("fsync", "wanted", "lost"),
    [
        (AppendFsync.ALWAYS, Level.OK, "nothing that was answered"),
        (AppendFsync.EVERY_SECOND, Level.OK, "rarely something, at most about a second"),
        (AppendFsync.NO, Level.FIX, "what the kernel had not written yet"),
    ],
)
def test_an_append_only_file_is_as_good_as_it_is_forced(
    make_server: MakeServer, kind: ServerKind, fsync: AppendFsync, wanted: Level, lost: str
) -> None:
    seen = seen_on(make_server(ServerOptions(kind=kind, append_only=True, append_fsync=fsync)).url)
    assert (level(seen, "appendonly"), level(seen, "appendfsync")) == (Level.OK, wanted)
    assert losses(seen)[1].lost == lost
    assert level(seen, "queue") is Level.WARN
    assert (level(seen, "library"), seen.libraries) == (Level.WARN, ())


@pytest.mark.parametrize(
    ("name", "value", "found", "wanted"),
    [
        ("maxmemory-policy", "allkeys-lru", "maxmemory-policy", Level.FIX),
        ("maxmemory-policy", "volatile-ttl", "maxmemory-policy", Level.FIX),
        # Never due: the file would come back with the next restart of this server, in another test.
        ("save", "86400 1000000", "save", Level.NOTE),
    ],
)
def test_what_a_server_is_set_to_is_seen(queue: OpenQueue, name: str, value: str, found: str, wanted: Level) -> None:
    before = queue.client.config_get(name)[name]
    queue.client.config_set(name, value)
    try:
        seen = seen_on(queue.url)
    finally:
        queue.client.config_set(name, before)
    assert named(examine(seen))[found].level is wanted
    if name == "save":
        assert losses(seen)[1].lost == "everything since the last save (save 86400 1000000)"


@pytest.fixture
def limited(queue: OpenQueue) -> Callable[..., str]:
    """Return a function that makes a user with all permissions but some, and gives its address."""

    def made(*rules: str) -> str:
        queue.client.execute_command("ACL", "SETUSER", "eye", "reset", "on", ">glass", "~*", "&*", "+@all", *rules)
        return queue.url.replace("redis://", "redis://eye:glass@")

    return made


def test_without_config_it_says_what_it_can_not_see(queue: OpenQueue, limited: Callable[..., str]) -> None:
    seen = seen_on(limited("-config"))
    assert seen.config is None
    assert level(seen, "save") is Level.UNSEEN
    # INFO shows these as well.
    assert (level(seen, "appendonly"), level(seen, "maxmemory-policy")) == (Level.FIX, Level.OK)
    assert losses(seen)[1].lost == "everything since the last save, if there is one"
    queue.client.acl_deluser("eye")


def test_without_info_and_functions_too(queue: OpenQueue, limited: Callable[..., str]) -> None:
    seen = seen_on(limited("-config", "-info", "-function"))
    assert (seen.info, seen.config, seen.libraries) == (None, None, None)
    wanted = dict.fromkeys(("appendonly", "save", "maxmemory-policy", "role", "min-replicas-to-write"), Level.UNSEEN)
    assert {name: level(seen, name) for name in wanted} == wanted
    assert level(seen, "library") is Level.NOTE
    assert losses(seen)[1].lost == "not known: persistence is not shown to this user"
    assert losses(seen)[-1].lost == "not known: replicas are not shown to this user"
    # The rule without the replicas says no more.
    with needing(queue, 3):
        (rule,) = (one for one in examine(seen_on(limited("-info"))) if one.name == "min-replicas-to-write")
    assert (rule.level, "min-replicas-to-write is 3" in rule.said) == (Level.UNSEEN, True)
    queue.client.acl_deluser("eye")


@contextmanager
def replicated(queue: OpenQueue, make_server: MakeServer) -> Iterator[redis.Redis]:
    """Give a replica of the queue's server, of the same kind."""
    is_valkey = "valkey_version" in queue.client.info("server")
    replica = make_server(ServerOptions(kind=ServerKind.VALKEY if is_valkey else ServerKind.REDIS))
    port = int(queue.url.rpartition(":")[2].partition("/")[0])
    with redis.Redis.from_url(replica.url, decode_responses=True) as client:
        queue.client.config_set("repl-diskless-sync-delay", 0)
        client.replicaof("127.0.0.1", port)
        wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica's link", 30)
        try:
            yield client
        finally:
            client.replicaof("NO", "ONE")


@contextmanager
def needing(queue: OpenQueue, least: int, max_lag_s: int = 10) -> Iterator[None]:
    """Let each write need so many replicas, and none again afterwards."""
    for name, value in (("min-replicas-max-lag", max_lag_s), ("min-replicas-to-write", least)):
        queue.client.config_set(name, value)
    try:
        yield
    finally:
        queue.client.config_set("min-replicas-to-write", 0)
        queue.client.config_set("min-replicas-max-lag", 10)


@contextmanager
def out_of_touch(queue: OpenQueue, replica: redis.Redis) -> Iterator[None]:
    """Let a replica hang, and count as out of touch a second later."""
    queue.client.config_set("min-replicas-max-lag", 1)
    pid = int(replica.info("server")["process_id"])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def hint_on_replicas(url: str) -> str:
    (hint,) = (finding.hint for finding in examine(seen_on(url)) if finding.name == "min-replicas-to-write")
    return hint


def least_replicas(url: str) -> Level | None:
    return level(seen_on(url), "min-replicas-to-write")


def test_a_replica_must_be_fixed_and_its_primary_may_be_cut_off(queue: OpenQueue, make_server: MakeServer) -> None:
    assert least_replicas(queue.url) is None
    with replicated(queue, make_server) as client:
        address = client.connection_pool.connection_kwargs
        assert level(seen_on(f"redis://127.0.0.1:{address['port']}/0"), "role") is Level.FIX
        assert losses(seen_on(queue.url))[-1].lost == "what the replica had not received yet"
        assert least_replicas(queue.url) is Level.WARN


def test_a_primary_needs_a_replica_more_than_its_writes_do(
    queue: OpenQueue, make_server: MakeServer, limited: Callable[..., str]
) -> None:
    without_config = limited("-config")
    with replicated(queue, make_server):
        with needing(queue, 1):
            # The one that takes over has none.
            assert (least_replicas(queue.url), least_replicas(without_config)) == (Level.WARN, Level.UNSEEN)
            assert hint_on_replicas(queue.url).startswith("Add a replica, ")
            with replicated(queue, make_server) as second:
                wait_until(lambda: least_replicas(queue.url) is None, "two replicas in touch")
                with out_of_touch(queue, second):
                    wait_until(lambda: least_replicas(queue.url) is Level.WARN, "one replica in touch")
                    assert hint_on_replicas(queue.url) == "Bring the replicas back that are not in touch."
        with needing(queue, 2):
            wait_until(lambda: least_replicas(queue.url) is Level.FIX, "one replica in touch")
        with needing(queue, 2, max_lag_s=0):
            # Then it needs none.
            assert queue.submit().accepted
            assert (least_replicas(queue.url), least_replicas(without_config)) == (Level.WARN, Level.WARN)
    queue.client.acl_deluser("eye")


def test_a_replica_that_hangs_is_none_that_a_write_can_have(
    queue: OpenQueue, make_server: MakeServer, limited: Callable[..., str]
) -> None:
    without_config = limited("-config")
    with replicated(queue, make_server) as client, needing(queue, 1), out_of_touch(queue, client):
        wait_until(lambda: least_replicas(queue.url) is Level.FIX, "the replica to be out of touch")
        assert least_replicas(without_config) is Level.FIX
        with pytest.raises(StoreUnavailable):
            queue.submit()
    queue.client.acl_deluser("eye")


def test_another_contract_is_a_warning_and_a_broken_one_must_be_fixed(queue: OpenQueue) -> None:
    seen = seen_on(queue.url)
    assert level(seen, "settings") is Level.WARN
    queue.client.hset("queue:settings", "contract", "{")
    assert level(seen_on(queue.url), "contract") is Level.FIX
    queue.client.hset("queue:settings", "contract", queue.contract.for_redis())


def test_without_a_settings_file_the_contract_is_compared_with_nothing(queue: OpenQueue) -> None:
    (finding,) = [found for found in examine(seen_on(queue.url, own_file=False)) if found.name == "settings"]
    assert finding.level is Level.NOTE
    assert "compared with nothing" in finding.said
    assert "--settings FILE" in finding.hint


def test_unsafe_classes_are_named_and_a_resolver_makes_them_a_note(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(classes={"pay": {"deadline_s": 60, "effects": "unsafe"}})
    seen = seen_on(queue.url)
    unsafe = [finding for finding in examine(seen) if finding.name == "effects"]
    assert [finding.said.split()[1] for finding in unsafe] == ["pay", "send-mail"]
    assert {finding.level for finding in unsafe} == {Level.WARN}
    asked = examine(replace(seen, resolver_url=True))
    assert {finding.level for finding in asked if finding.name == "effects"} == {Level.NOTE}


@pytest.mark.parametrize(
    ("deadline_s", "does"),
    [(5, "admission closes"), (5.001, "does not open again"), (15, "does not open again"), (15.001, None)],
)
def test_a_deadline_under_a_bound_of_the_slack_is_named(
    open_queue: OpenQueueFunction, deadline_s: float, does: str | None
) -> None:
    bounds = {"reject_slack_p10_seconds": 5, "recovered_slack_p10_seconds": 15}
    queue = open_queue(classes={"quick": {"deadline_s": deadline_s}}, thresholds=bounds)
    found = [finding for finding in examine(seen_on(queue.url)) if "class quick" in finding.said]
    assert [(finding.name, finding.level) for finding in found] == [("deadlines", Level.WARN)] * (does is not None)
    assert does is None or does in found[0].said


@pytest.mark.parametrize(
    ("skew_s", "wanted"),
    [(0.1, Level.OK), (-0.1, Level.OK), (0.9, Level.WARN), (-1.9, Level.WARN), (2.5, Level.FIX), (-60.0, Level.FIX)],
)
def test_clocks_that_differ_are_named(queue: OpenQueue, skew_s: float, wanted: Level) -> None:
    assert level(replace(seen_on(queue.url), skew_s=skew_s, rtt_s=0.01), "clock") is wanted


def test_a_slow_answer_is_no_skew(queue: OpenQueue) -> None:
    assert level(replace(seen_on(queue.url), skew_s=3.0, rtt_s=3.0), "clock") is Level.OK


def test_a_cluster_needs_a_queue_with_a_name(queue: OpenQueue) -> None:
    seen = seen_on(queue.url)
    clustered = replace(seen, info={**(seen.info or {}), "cluster_enabled": "1"})
    assert level(seen, "cluster") is None
    assert level(clustered, "cluster") is Level.FIX
    # A plain address shows one node of it; which primaries there are may not be shown at all.
    named = replace(clustered, queue="mail")
    assert level(named, "cluster") is Level.WARN
    assert level(replace(named, library_by_primary=None), "cluster") is Level.UNSEEN
    assert level(replace(named, library_by_primary={"10.0.0.1:6379": seen.own_code}), "cluster") is Level.NOTE


def test_no_server_is_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert dispatch(["queue", "doctor", "--redis-url", "redis://127.0.0.1:1/0"]) == 1
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "value", "finding"),
    [
        ("appendonly", "no", "appendonly"),
        ("appendfsync", "no", "appendfsync"),
        ("maxmemory-policy", "allkeys-lru", "maxmemory-policy"),
    ],
)
def test_a_server_that_keeps_less_than_a_recovery_leans_on_is_unsound(
    make_server: MakeServer, setting: str, value: str, finding: str
) -> None:
    server = make_server(ServerOptions(kind=ServerKind.REDIS, append_only=True))
    with redis.Redis.from_url(server.url) as client:
        assert unsound(seen_on(server.url)) == ()
        client.config_set(setting, value)
        assert [one.name for one in unsound(seen_on(server.url))] == [finding]
