"""A queue's server behind TLS, a client certificate and a user whose password is in a file that changes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drill.children import Children
from drill.server import ServerKind
from exporter.acl import acl_line
from exporter.app import process_registry, reasons
from exporter.rendering import Renderer
from exporter.server import Exporter
from sluicegate import event_loop
from sluicegate.async_producer import AsyncProducer
from sluicegate.errors import SettingsError, StoreError, StoreRejected, StoreUnavailable, UsageError
from sluicegate.job import Call, CallKind, Job
from sluicegate.producer import Producer
from sluicegate.restore import Wish, restore
from sluicegate.settings import Settings, WorkerSettings, default_settings, load, parse
from sluicegate.snapshot import write_snapshot
from sluicegate.store import Store
from sluicegate.worker import Worker
from tests.certificates import Authority
from tests.queues import store_of, wait_until
from tests.topologies import TlsServer, start_server, tls_server

PASSWORD = "s3cret-of-the-worker"
NEXT = "the-s3cret-after-it"
WITHIN_S = 20.0


@pytest.fixture(scope="module")
def secured(session_children: Children, tmp_path_factory: pytest.TempPathFactory) -> TlsServer:
    return tls_server(session_children, ServerKind.REDIS, tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return path


@pytest.fixture
def settings(secured: TlsServer, secret: Path) -> Settings:
    secured.admin.flushall()
    allow(secured, "worker", PASSWORD)
    client = secured.authority.client()
    body: dict[str, Any] = default_settings().model_dump(mode="json")
    files = {"ca_file": str(secured.authority.ca), "cert_file": str(client.cert), "key_file": str(client.key)}
    body |= {
        "redis_url": f"rediss://worker@127.0.0.1:{secured.port}/0",
        "redis_password_file": str(secret),
        "redis": files,
    }
    body["exporter"] |= {"port": 0}
    return Settings.model_validate(body)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with store_of(settings) as made:
        yield made


def allow(secured: TlsServer, user: str, password: str) -> None:
    secured.admin.execute_command("ACL", "SETUSER", user, "reset", "on", f">{password}", "~*", "&*", "+@all")


def changed(settings: Settings, **redis: object) -> Settings:
    return settings.model_copy(update={"redis": settings.redis.model_copy(update=redis)})


def said_by(settings: Settings) -> str:
    """Give what a store says that can't reach its server."""
    store = Store.of(settings)
    try:
        with pytest.raises(StoreError) as refused:
            store.observe()
        return str(refused.value)
    finally:
        store.close()


def test_a_queue_lives_behind_tls_a_certificate_and_a_password_from_a_file(store: Store) -> None:
    assert Producer(store).submit("lint-fix", "{}").accepted
    assert len(store.claim("w1", "r1", 1).jobs) == 1
    assert store.wait_for_work(0.5), "the submission left a token"
    assert store.observe().running == 1


def test_a_worker_does_its_jobs_over_tls_on_connections_of_its_loop_that_are_cut_meanwhile(
    store: Store, secured: TlsServer
) -> None:
    payload = "x" * 200_000
    producer = Producer(store)
    done: list[str] = []

    async def handler(job: Job, timeout_s: float) -> Call:
        assert job.payload == payload
        done.append(job.job_id)
        if len(done) == 4:
            secured.admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        return Call(CallKind.OK, 0.01, 200)

    async def work() -> None:
        worker = Worker(store, handler, WorkerSettings(max_inflight=2))
        running = asyncio.create_task(worker.run())
        await asyncio.to_thread(wait_until, lambda: len(done) >= len(ids), "all calls")
        worker.stop()
        await running

    ids = [producer.submit("lint-fix", payload).job_id for _ in range(8)]
    event_loop.run(work())
    assert sorted(done) == sorted(ids)
    assert {secured.admin.hget(store.keys.job(one), "state") for one in ids} == {"succeeded"}


def test_a_server_of_another_authority_and_a_client_without_a_certificate_are_refused(
    settings: Settings, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    client = stranger.client()

    assert "certificate verify failed" in said_by(changed(settings, ca_file=stranger.ca))
    assert "certificate verify failed" in said_by(changed(settings, ca_file=None))
    for redis in ({"cert_file": None, "key_file": None}, {"cert_file": client.cert, "key_file": client.key}):
        assert said_by(changed(settings, **redis))


def test_a_queue_is_written_down_and_put_back_over_tls(store: Store, secured: TlsServer, tmp_path: Path) -> None:
    text = json.dumps({"text": "x" * 100_000})
    ids = {Producer(store).submit("lint-fix", text).job_id for _ in range(20)}
    assert write_snapshot(store, tmp_path / "s.jsonl.gz").jobs == 20
    secured.admin.flushall()
    assert restore(store, Wish(tmp_path / "s.jsonl.gz", "bob", "the host was lost")).counts == {"ready": 20}
    assert set(store.list_jobs("ready")) == ids


def test_a_changed_password_counts_from_the_next_connection_on(store: Store, secured: TlsServer, secret: Path) -> None:
    allow(secured, "worker", NEXT)
    secured.admin.execute_command("CLIENT", "KILL", "USER", "worker")
    with pytest.raises(StoreRejected, match="invalid username-password pair"):
        store.observe()
    secret.write_text(NEXT)
    assert store.observe().ready == 0
    # A file that is taken away is a reason, and nothing is open without a user.
    secret.unlink()
    secured.admin.execute_command("CLIENT", "KILL", "USER", "worker")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="redis_password_file names"):
            store.observe()
    secret.write_text(NEXT)
    assert store.observe().ready == 0


def test_the_exporter_s_own_user_reads_over_tls_and_writes_nothing(
    store: Store, settings: Settings, secured: TlsServer, tmp_path: Path
) -> None:
    words = acl_line("reader", ("default",)).replace("PASSWORD", NEXT).split()
    secured.admin.execute_command(*words)
    other = tmp_path / "reader"
    other.write_text(NEXT)
    url = settings.redis_url.replace("worker@", "reader@")
    exporter = Exporter(settings.model_copy(update={"redis_url": url, "redis_password_file": other}))
    try:
        assert asyncio.run(exporter.collector.scrape()).complete
    finally:
        exporter.stop()
    writer = Store.of(settings.model_copy(update={"redis_url": url, "redis_password_file": other}))
    with pytest.raises(StoreError):
        Producer(writer).submit("lint-fix", "{}")
    writer.close()


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_the_password_is_on_no_page_in_no_error_and_in_no_log(
    settings: Settings, secret: Path, tmp_path: Path, right: bool
) -> None:
    if not right:
        secret.write_text(NEXT)
    exporter = Exporter(settings)
    try:
        scrape = asyncio.run(exporter.collector.scrape())
        page = Renderer(process_registry()).render(scrape, "")[0].decode()
    finally:
        exporter.stop()
    file = tmp_path / "sluicegate.yaml"
    file.write_text(settings.model_dump_json())
    said = [page, reasons(scrape.readings), repr(settings), repr(exporter)]
    for words in (("exporter", "once"), ("queue", "doctor"), ("queue", "settings")):
        said.append(output(*words, "--settings", str(file)))
    if not right:
        assert "invalid username-password pair" in "".join(said)
    for secret_text in (PASSWORD, NEXT):
        assert secret_text not in "".join(said)


@pytest.fixture(scope="module")
def guarded(session_children: Children) -> str:
    """Give host and port of a server that wants a password of everybody."""
    port = start_server(session_children, ServerKind.REDIS, "guarded", "--requirepass", PASSWORD)
    return f"127.0.0.1:{port}/0"


@pytest.mark.parametrize(
    ("given", "why"),
    [("", "it wants a password, and got none"), (":wrong@", "invalid username-password pair")],
    ids=["none", "wrong"],
)
@pytest.mark.parametrize("command", ["stats", "settings"])
def test_who_is_not_let_in_is_told_where_name_and_password_are_set(
    guarded: str, command: str, given: str, why: str
) -> None:
    said = output("queue", command, "--redis-url", f"redis://{given}{guarded}")
    assert why in said
    assert "HELLO" not in said
    assert "redis_password_file or the environment's REDIS_PASSWORD_FILE." in said


def output(*words: str) -> str:
    """Give all that a command says."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "REDIS_PASSWORD_FILE")
    }
    done = subprocess.run(
        [sys.executable, "-m", "sluicegate", *words],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
        env=environment,
    )
    return done.stdout + done.stderr


def test_the_file_may_come_from_the_environment(settings: Settings, secret: Path, tmp_path: Path) -> None:
    file = tmp_path / "sluicegate.yaml"
    file.write_text(settings.model_copy(update={"redis_password_file": None}).model_dump_json())
    loaded = load(file, {"REDIS_PASSWORD_FILE": str(secret)})
    assert loaded.redis_password_file == secret
    store = Store.of(loaded)
    store.server_time_ms()
    store.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "holds nothing"), ("a\nb", "holds more than one line"), (None, "cannot be read: No such file")],
)
def test_a_file_without_a_password_is_refused_before_anything_connects(
    settings: Settings, tmp_path: Path, text: str | None, said: str
) -> None:
    path = tmp_path / "other"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match=said) as refused:
        Store.of(settings.model_copy(update={"redis_password_file": path}))
    assert f"redis_password_file names {path}" in str(refused.value)


@pytest.mark.parametrize(
    ("url", "redis", "said"),
    [
        ("rediss://worker:x@h/0", {}, "Both the Redis address and redis_password_file give a password"),
        (
            "redis://worker@h/0",
            {"ca_file": "ca.pem"},
            r"redis\.ca_file is set, but the Redis address does not ask for TLS",
        ),
        ("rediss://worker@h/0", {"ca_file": "nowhere.pem"}, r"redis\.ca_file names nowhere\.pem, which is no file"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    settings: Settings, url: str, redis: dict[str, str], said: str
) -> None:
    body = settings.model_dump(mode="json") | {"redis_url": url, "redis": redis}
    with pytest.raises(UsageError, match=said) as refused:
        Store.of(Settings.model_validate(body))
    assert ":x@" not in str(refused.value)


@pytest.mark.parametrize(
    ("redis", "said"),
    [
        ({"cert_file": "c.pem"}, "belong together"),
        ({"sentinels": ["h:1"]}, "redis.sentinels and redis.service belong together"),
        ({"service": "s"}, "redis.sentinels and redis.service belong together"),
        ({"sentinels": ["h:1"], "service": "s", "cluster_nodes": ["h:2"]}, "exclude each other"),
        ({"sentinel_username": "ann"}, "need redis.sentinels"),
        ({"cluster_nodes": ["h"]}, "'h' is not HOST:PORT"),
        ({"cluster_nodes": ["h:70000"]}, "'h:70000' is not HOST:PORT"),
    ],
)
def test_a_half_named_topology_is_refused(redis: dict[str, Any], said: str) -> None:
    body = default_settings().model_dump(mode="json") | {"redis": redis}
    with pytest.raises(SettingsError, match=said):
        parse(body, "a file")


def test_asyncio_submits_over_the_same_certificates_with_the_same_password(store: Store) -> None:
    async def submitted() -> list[bool]:
        async with AsyncProducer(store) as producer:
            asked = (producer.submit("lint-fix", "{}") for _ in range(60))
            return [decision.accepted for decision in await asyncio.gather(*asked)]

    connection = store.async_connection()
    assert connection is not None
    assert asyncio.run(submitted()) == [True] * 60
