"""The fault proxy in front of the fake provider, both as real processes."""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from drill.children import Children
from drill.effects import read_effects
from drill.ports import free_port
from drill.readiness import answers_http

SERVICE_S = 0.05
PLANT = (sys.executable, "-m", "drill.cli_plant")


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what led to it: only the innermost tells a reset from a plain close."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class Plant:
    """The two processes, and clients for both."""

    def __init__(self, children: Children, provider_port: int, proxy_port: int) -> None:
        self.children = children
        self.provider_port = provider_port
        self.log = children.folder / "effects.jsonl"
        self.control = httpx.Client(base_url=f"http://127.0.0.1:{proxy_port}", trust_env=False)
        self.door = httpx.Client(trust_env=False, timeout=10)

    def open(self) -> None:
        """Start anew with one proxy, `provider`, without toxics."""
        for name in self.control.get("/proxies").json():
            assert self.control.delete(f"/proxies/{name}").status_code == 204
        made = self.control.post("/proxies", json={"name": "provider", "upstream": f"127.0.0.1:{self.provider_port}"})
        assert made.status_code == 201
        self.door.close()
        self.door = httpx.Client(base_url=f"http://{made.json()['listen']}", trust_env=False, timeout=10)

    def toxic(self, **toxic: object) -> None:
        assert self.control.post("/proxies/provider/toxics", json=toxic).status_code == 200

    def call(self, key: str | None = None) -> httpx.Response:
        return self.door.post("/v1/complete", json={}, headers={"Idempotency-Key": key} if key else {})

    def timed_call(self, key: str | None = None) -> tuple[httpx.Response, float]:
        before = time.monotonic()
        return self.call(key), time.monotonic() - before

    def effects(self, key: str) -> int:
        return sum(effect.key == key for effect in read_effects(self.log))


@pytest.fixture(scope="module")
def running_plant() -> Iterator[Plant]:
    with Children() as children:
        log = children.folder / "effects.jsonl"
        options = ("--log", str(log), "--service-s", str(SERVICE_S), "--jitter-s", "0", "--seed", "1")
        provider = children.start_listening(
            "provider", lambda port: (*PLANT, "provider", "--port", str(port), *options), answers_http("/healthz")
        )
        proxy = children.start_listening(
            "proxy", lambda port: (*PLANT, "proxy", "--port", str(port), "--seed", "1"), answers_http("/version")
        )
        yield Plant(children, provider, proxy)


@pytest.fixture
def plant(running_plant: Plant) -> Plant:
    running_plant.open()
    return running_plant


def test_shows_a_proxy_in_toxiproxys_shape(plant: Plant) -> None:
    shown = plant.control.get("/proxies").json()["provider"]
    assert shown["name"] == "provider"
    assert shown["upstream"] == f"127.0.0.1:{plant.provider_port}"
    assert shown["listen"].startswith("127.0.0.1:")
    assert shown["enabled"] is True
    assert shown["toxics"] == []
    assert plant.control.get("/proxies/provider").json() == shown
    assert plant.control.get("/version").json()["version"][0].isdigit()


def test_shows_a_toxic_in_toxiproxys_shape_with_its_defaults(plant: Plant) -> None:
    made = plant.control.post("/proxies/provider/toxics", json={"type": "latency", "attributes": {"latency": 7}})
    expected = {
        "attributes": {"latency": 7, "jitter": 0},
        "name": "latency_downstream",
        "type": "latency",
        "stream": "downstream",
        "toxicity": 1.0,
    }
    assert made.status_code == 200
    assert made.json() == expected
    assert plant.control.get("/proxies/provider/toxics").json() == [expected]
    assert plant.control.get("/proxies/provider/toxics/latency_downstream").json() == expected


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_changes_the_attributes_that_are_named_and_keeps_the_others(plant: Plant, method: str) -> None:
    plant.toxic(name="slow", type="latency", attributes={"latency": 7, "jitter": 3})
    body = {"attributes": {"latency": 9}, "toxicity": 0.5}
    changed = plant.control.request(method, "/proxies/provider/toxics/slow", json=body)
    assert changed.status_code == 200
    assert changed.json()["attributes"] == {"latency": 9, "jitter": 3}
    assert changed.json()["toxicity"] == 0.5


BAD_REQUESTS = [
    ("GET", "/proxies/nobody", "", 404, "proxy not found"),
    ("DELETE", "/proxies/nobody", "", 404, "proxy not found"),
    ("POST", "/proxies/nobody/toxics", '{"type":"latency"}', 404, "proxy not found"),
    ("GET", "/proxies/provider/toxics/nothing", "", 404, "toxic not found"),
    ("DELETE", "/proxies/provider/toxics/nothing", "", 404, "toxic not found"),
    ("POST", "/proxies/provider/toxics/nothing", "{}", 404, "toxic not found"),
    ("POST", "/proxies", '{"name":"provider","upstream":"127.0.0.1:1"}', 409, "proxy already exists"),
    ("POST", "/proxies", '{"upstream":"127.0.0.1:1"}', 400, "missing required field: name"),
    ("POST", "/proxies", '{"name":"x"}', 400, "missing required field: upstream"),
    (
        "POST",
        "/proxies",
        '{"name":"x","upstream":"here"}',
        400,
        "bad request body: `upstream` is 'here', not host:port",
    ),
    ("POST", "/proxies", '{"name":', 400, "bad request body: "),
    ("POST", "/proxies", "[]", 400, "bad request body: a JSON object is expected"),
    ("POST", "/proxies/provider", '{"enabled":"yes"}', 400, "bad request body: `enabled` is 'yes'"),
    ("POST", "/proxies/provider/toxics", "nonsense", 400, "bad request body: "),
    ("POST", "/proxies/provider/toxics", '{"type":"gremlin"}', 400, "invalid toxic type"),
    ("POST", "/proxies/provider/toxics", '{"type":"latency","stream":"sideways"}', 400, "stream was invalid"),
    (
        "POST",
        "/proxies/provider/toxics",
        '{"type":"latency","toxicity":2}',
        400,
        "`toxicity` is 2, not a number from 0",
    ),
    (
        "POST",
        "/proxies/provider/toxics",
        '{"type":"latency","attributes":{"latency":"slow"}}',
        400,
        "`latency` is 'slow'",
    ),
    ("POST", "/proxies/provider/toxics", '{"type":"status","attributes":{"status":99}}', 400, "from 200 to 599"),
    ("POST", "/populate", "{}", 400, "bad request body: a list of proxies is expected"),
    ("POST", "/populate", '[{"name":"a","upstream":"h:1"},{"name":"b"}]', 400, "upstream at proxy 2"),
    ("GET", "/nowhere", "", 404, "Not Found"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "error"), BAD_REQUESTS)
def test_refuses_bad_requests(plant: Plant, method: str, path: str, body: str, status: int, error: str) -> None:
    before = plant.control.get("/proxies").json()
    answer = plant.control.request(method, path, content=body)
    assert answer.status_code == status
    assert answer.json()["status"] == status
    assert error in answer.json()["error"]
    assert plant.control.get("/proxies").json() == before


def test_refuses_a_second_toxic_of_the_same_name(plant: Plant) -> None:
    plant.toxic(name="slow", type="latency")
    again = plant.control.post("/proxies/provider/toxics", json={"name": "slow", "type": "status"})
    assert (again.status_code, again.json()["error"]) == (409, "toxic already exists")


def test_the_control_api_refuses_browsers(plant: Plant) -> None:
    assert plant.control.post("/reset", headers={"User-Agent": "Mozilla/5.0"}).status_code == 403


def test_says_when_an_address_is_taken(plant: Plant) -> None:
    taken = plant.control.get("/proxies/provider").json()["listen"]
    answer = plant.control.post("/proxies", json={"name": "second", "listen": taken, "upstream": "127.0.0.1:1"})
    assert answer.status_code == 500
    assert "in use" in answer.json()["error"]
    assert "second" not in plant.control.get("/proxies").json()


def test_populates_and_leaves_a_proxy_that_stands_alone(plant: Plant) -> None:
    standing = plant.control.get("/proxies/provider").json()
    plant.toxic(name="slow", type="latency")
    second = {"name": "second", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:1", "enabled": False}
    wanted = [{key: standing[key] for key in ("name", "listen", "upstream")}, second]
    answer = plant.control.post("/populate", json=wanted)
    assert answer.status_code == 201
    assert [proxy["name"] for proxy in answer.json()["proxies"]] == ["provider", "second"]
    assert [toxic["name"] for toxic in answer.json()["proxies"][0]["toxics"]] == ["slow"]
    assert answer.json()["proxies"][1]["enabled"] is False


def test_passes_calls_on_unharmed_and_keeps_the_connection(plant: Plant) -> None:
    with plant.door.stream("POST", "/v1/complete", json={"class": "lint-fix"}) as first:
        body = first.read()
        connection = first.extensions["network_stream"].get_extra_info("client_addr")
    with plant.door.stream("GET", "/healthz") as second:
        second.read()
        assert second.extensions["network_stream"].get_extra_info("client_addr") == connection
    assert (first.status_code, body) == (200, b'{"ok":true}')
    assert plant.door.get("/nowhere").status_code == 404
    assert plant.door.head("/healthz").status_code == 405


def test_latency_delays_by_its_mean_and_jitter(plant: Plant) -> None:
    plant.toxic(type="latency", attributes={"latency": 300, "jitter": 100})
    times = [took for _, took in (plant.timed_call() for _ in range(8))]
    assert min(times) >= SERVICE_S + 0.2
    assert statistics.median(times) < SERVICE_S + 0.4 + 0.3  # the last part is the machine's
    assert max(times) - min(times) > 0.01


def test_latency_holds_up_no_other_connection(plant: Plant) -> None:
    plant.toxic(type="latency", attributes={"latency": 600})
    before = time.monotonic()
    with ThreadPoolExecutor(10) as pool:
        statuses = [answer.status_code for answer in pool.map(lambda _: plant.call(), range(10))]
    assert statuses == [200] * 10
    assert time.monotonic() - before < 2  # one after the other they would take six seconds


@pytest.mark.parametrize(
    "share", [{"attributes": {"probability": 0.3}}, {"toxicity": 0.3}], ids=["probability", "toxicity"]
)
def test_status_answers_its_share_without_asking_the_provider(plant: Plant, share: dict[str, object]) -> None:
    plant.toxic(type="status", **share)
    keys = [f"share-{next(iter(share))}-{n}" for n in range(100)]
    with ThreadPoolExecutor(10) as pool:
        answers_by_key = dict(zip(keys, pool.map(plant.call, keys), strict=True))
    refused = [key for key, answer in answers_by_key.items() if answer.status_code == 503]
    assert 12 <= len(refused) <= 50  # 30 ± 4 standard deviations
    assert all(plant.effects(key) == (key not in refused) for key in keys)


def test_status_carries_a_retry_after(plant: Plant) -> None:
    plant.toxic(type="status", attributes={"status": 429, "retry_after_s": 30})
    answer = plant.call()
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "30")


def test_an_injected_status_comes_as_late_as_an_answer_whatever_was_added_first(plant: Plant) -> None:
    plant.toxic(type="status", attributes={"status": 503})
    plant.toxic(type="latency", attributes={"latency": 300})
    answer, took = plant.timed_call()
    assert answer.status_code == 503
    assert took >= 0.3


def test_a_toxic_that_is_taken_away_no_longer_acts(plant: Plant) -> None:
    plant.toxic(name="down", type="status")
    assert plant.call().status_code == 503
    assert plant.control.delete("/proxies/provider/toxics/down").status_code == 204
    assert plant.call().status_code == 200


@pytest.mark.parametrize(("stream", "effects"), [("downstream", 1), ("upstream", 0)])
def test_timeout_never_answers_and_the_stream_says_whether_the_work_was_done(
    plant: Plant, stream: str, effects: int
) -> None:
    plant.toxic(type="timeout", stream=stream)
    with pytest.raises(httpx.ReadTimeout):
        plant.door.post("/v1/complete", headers={"Idempotency-Key": f"lost-{stream}"}, timeout=SERVICE_S + 0.5)
    assert plant.effects(f"lost-{stream}") == effects


def test_timeout_closes_the_connection_after_its_time(plant: Plant) -> None:
    plant.toxic(type="timeout", attributes={"timeout": 200})
    with pytest.raises(httpx.RemoteProtocolError):
        plant.call()


def test_a_held_connection_is_let_go_when_the_timeout_is_taken_away(plant: Plant) -> None:
    plant.toxic(name="hang", type="timeout", stream="upstream")
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(plant.call)
        with pytest.raises(TimeoutError):
            held.result(0.3)
        plant.control.delete("/proxies/provider/toxics/hang")
        with pytest.raises(httpx.RemoteProtocolError):
            held.result(2)


def test_reset_peer_resets_the_connection(plant: Plant) -> None:
    plant.toxic(type="reset_peer", stream="upstream")
    with pytest.raises(httpx.ReadError) as caught:
        plant.call()
    assert any(isinstance(error, ConnectionResetError) for error in causes(caught.value))


def test_a_disabled_proxy_refuses_connections_and_closes_the_open_ones(plant: Plant) -> None:
    listen = plant.control.get("/proxies/provider").json()["listen"]
    plant.toxic(type="latency", attributes={"latency": 20_000})
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(plant.call)
        with pytest.raises(TimeoutError):
            held.result(0.2)
        assert plant.control.post("/proxies/provider", json={"enabled": False}).json()["enabled"] is False
        with pytest.raises(httpx.TransportError):
            held.result(2)
    with pytest.raises(httpx.ConnectError):
        plant.call()
    assert plant.control.post("/reset").status_code == 204
    back = plant.control.get("/proxies/provider").json()
    assert (back["enabled"], back["listen"], back["toxics"]) == (True, listen, [])
    assert plant.call().status_code == 200


def test_adds_no_error_of_its_own_when_the_provider_is_away(plant: Plant) -> None:
    changed = plant.control.post("/proxies/provider", json={"upstream": f"127.0.0.1:{free_port()}"})
    assert changed.status_code == 200
    with pytest.raises(httpx.RemoteProtocolError):
        plant.call()


def test_refuses_what_is_no_http(plant: Plant) -> None:
    host, port = plant.control.get("/proxies/provider").json()["listen"].split(":")
    with socket.create_connection((host, int(port)), 2) as connection:
        connection.sendall(b"\x16\x03\x01 not http\r\n\r\n")
        assert connection.recv(64).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("word", ["provider", "proxy"])
def test_a_taken_port_is_one_sentence_and_a_hint(word: str, tmp_path: Path) -> None:
    extra = ("--log", str(tmp_path / "log")) if word == "provider" else ()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = subprocess.run(
            [sys.executable, "-m", "sluicegate", "drill", word, "--port", str(taken.getsockname()[1]), *extra],
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert "address already in use" in ended.stderr
    assert "Choose another port" in ended.stderr
    assert "Traceback" not in ended.stderr
