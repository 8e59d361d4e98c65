"""The exporter's port behind a web-config file: who gets a page over TLS, who gets none, and what a rotation takes."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bcrypt
import httpx
import pytest
import yaml

from drill.children import Children
from drill.monitoring import find_prometheus, prometheus_arguments
from drill.readiness import answers_http
from drill.server import QueueServer
from exporter.server import Exporter
from sluicegate.errors import SettingsError
from sluicegate.settings import default_settings
from tests.certificates import Authority, Pair
from tests.queues import wait_until

NOWHERE = "redis://127.0.0.1:1/0"
USER, PASSWORD = "prometheus", "s3cret-of-the-scraper"
WITHIN_S = 10.0
FIGURE = "sluicegate_redis_up"


def hashed(password: str, cost: int = 4) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


class Web:
    """Write the web-config file of one test, in a folder of its own with its certificates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.authority.server()
        self.file = folder / "web.yaml"

    def write(self, *, tls: bool = True, users: dict[str, str] | None = None, **tls_options: str) -> Path:
        body: dict[str, Any] = {}
        if tls:
            body["tls_server_config"] = {"cert_file": "server.pem", "key_file": "server.key", **tls_options}
        if users:
            body["basic_auth_users"] = users
        self.file.write_text(yaml.safe_dump(body))
        return self.file


@pytest.fixture
def web(tmp_path: Path) -> Web:
    return Web(tmp_path / "web")


@contextmanager
def serving(file: Path, redis_url: str = NOWHERE) -> Iterator[Exporter]:
    base = default_settings()
    listening = base.exporter.model_copy(update={"port": 0, "web_config_file": file, "scrape_budget_s": 1.0})
    exporter = Exporter(base.model_copy(update={"redis_url": redis_url, "exporter": listening}))
    exporter.start()
    try:
        yield exporter
    finally:
        exporter.stop()


def client_of(web: Web, pair: Pair | None = None, auth: tuple[str, str] | None = None) -> httpx.Client:
    trusting = ssl.create_default_context(cafile=str(web.authority.ca))
    if pair is not None:
        trusting.load_cert_chain(*pair.files)
    return httpx.Client(verify=trusting, auth=auth, trust_env=False, timeout=WITHIN_S)


def page_of(client: httpx.Client, exporter: Exporter, path: str = "/metrics") -> httpx.Response:
    return client.get(exporter.url + path)


def test_a_real_prometheus_scrapes_over_tls_with_a_password_and_a_certificate(
    web: Web, children: Children, redis_server: QueueServer, tmp_path: Path
) -> None:
    file = web.write(
        users={USER: hashed(PASSWORD)},
        client_auth_type="RequireAndVerifyClientCert",
        client_ca_file="ca.pem",
        min_version="TLS13",
    )
    pair = web.authority.client()
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    with serving(file, redis_server.url) as exporter:
        config = tmp_path / "prometheus.yml"
        job = {
            "job_name": "sluicegate",
            "scheme": "https",
            "tls_config": {"ca_file": str(web.authority.ca), "cert_file": str(pair.cert), "key_file": str(pair.key)},
            "basic_auth": {"username": USER, "password_file": str(password)},
            "static_configs": [{"targets": [f"127.0.0.1:{exporter.port}"]}],
        }
        times = {"scrape_interval": "200ms", "scrape_timeout": "200ms"}
        config.write_text(yaml.safe_dump({"global": times, "scrape_configs": [job]}))
        program = find_prometheus().path
        port = children.start_listening(
            "prometheus", lambda port: prometheus_arguments(program, port, config), answers_http("/-/ready")
        )

        def answer(query: str) -> list[str]:
            found = httpx.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": query}, trust_env=False).json()
            return [row["value"][1] for row in found["data"]["result"]]

        wait_until(lambda: answer('up{job="sluicegate"}') == ["1"], "a scrape over TLS")
        wait_until(lambda: answer('sluicegate_redis_up{job="sluicegate",queue="default"}') == ["1"], "a figure")


def test_without_a_client_certificate_or_with_a_stranger_s_there_is_no_page(web: Web, tmp_path: Path) -> None:
    file = web.write(client_auth_type="RequireAndVerifyClientCert", client_ca_file="ca.pem")
    stranger = Authority(tmp_path / "stranger").client()
    with serving(file) as exporter:
        with client_of(web, web.authority.client()) as known:
            assert FIGURE in page_of(known, exporter).text
        for pair in (None, stranger):
            with client_of(web, pair) as refused, pytest.raises(httpx.TransportError):
                page_of(refused, exporter)


def test_a_certificate_that_is_asked_for_if_given_is_verified_if_given(web: Web, tmp_path: Path) -> None:
    file = web.write(client_auth_type="VerifyClientCertIfGiven", client_ca_file="ca.pem")
    stranger = Authority(tmp_path / "stranger").client()
    with serving(file) as exporter:
        for pair in (None, web.authority.client()):
            with client_of(web, pair) as taken:
                assert FIGURE in page_of(taken, exporter).text
        with client_of(web, stranger) as refused, pytest.raises(httpx.TransportError):
            page_of(refused, exporter)


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/healthz", "/", "/nowhere"])
@pytest.mark.parametrize("auth", [None, (USER, "wrong"), ("stranger", PASSWORD), (USER, "")])
def test_without_the_password_no_page_says_anything(web: Web, auth: tuple[str, str] | None, path: str) -> None:
    with (
        serving(web.write(tls=False, users={USER: hashed(PASSWORD)})) as exporter,
        httpx.Client(auth=auth, trust_env=False, timeout=WITHIN_S) as client,
    ):
        answer = page_of(client, exporter, path)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")
    assert "sluicegate" not in answer.text
    assert "default" not in answer.text


def test_with_the_password_every_page_is_there_and_carries_the_headers(web: Web) -> None:
    file = web.write(users={USER: hashed(PASSWORD), "other": hashed("other")})
    file.write_text(file.read_text() + "http_server_config: {headers: {X-Content-Type-Options: nosniff}}\n")
    with serving(file) as exporter, client_of(web, auth=(USER, PASSWORD)) as client:
        pages = {path: page_of(client, exporter, path) for path in ("/metrics", "/healthz", "/readyz", "/")}
        refused = client.get(exporter.url, auth=(USER, "wrong"))

    assert {path: page.status_code for path, page in pages.items()} == {
        "/metrics": 200,
        "/healthz": 200,
        "/readyz": 503,
        "/": 200,
    }
    assert all(page.headers["X-Content-Type-Options"] == "nosniff" for page in (*pages.values(), refused))


def test_plain_http_to_the_port_of_tls_gets_nothing(web: Web) -> None:
    with serving(web.write()) as exporter, pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{exporter.port}/metrics", trust_env=False, timeout=WITHIN_S)


def test_a_protocol_below_the_least_is_refused(web: Web) -> None:
    with serving(web.write(min_version="TLS13")) as exporter:
        old = ssl.create_default_context(cafile=str(web.authority.ca))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with httpx.Client(verify=old, trust_env=False) as client, pytest.raises(httpx.ConnectError):
            page_of(client, exporter)
        with client_of(web) as client:
            assert page_of(client, exporter).status_code == 200


def test_a_new_certificate_is_shown_to_the_next_connection_and_open_ones_go_on(web: Web) -> None:
    with serving(web.write()) as exporter, client_of(web) as open_since_before:
        assert page_of(open_since_before, exporter).status_code == 200
        before = shown_certificate(exporter)

        web.authority.server()

        wait_until(lambda: shown_certificate(exporter) != before, "the new certificate")
        assert page_of(open_since_before, exporter).status_code == 200
        with client_of(web) as client:
            assert FIGURE in page_of(client, exporter).text


def test_a_new_authority_of_scrapers_counts_without_a_restart(web: Web, tmp_path: Path) -> None:
    web.write(client_auth_type="RequireAndVerifyClientCert", client_ca_file="scrapers.pem")
    scrapers = web.folder / "scrapers.pem"
    scrapers.write_bytes(web.authority.ca.read_bytes())
    newer = Authority(tmp_path / "newer")
    with serving(web.file) as exporter:
        with client_of(web, web.authority.client()) as first:
            assert page_of(first, exporter).status_code == 200

        scrapers.write_bytes(newer.ca.read_bytes())

        wait_until(lambda: gets_a_page(web, exporter, newer.client()), "the new authority's client")
        assert not gets_a_page(web, exporter, web.authority.client())


def test_what_asks_for_less_waits_for_a_restart(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is half written is valid, and what is still to come is what keeps strangers out."""
    pair, users = web.authority.client(), {USER: hashed(PASSWORD)}
    required = "RequireAndVerifyClientCert"

    def refused(exporter: Exporter) -> None:
        wait_until(lambda: "web_config_refused" in capsys.readouterr().out, "the file is refused")
        with client_of(web, pair) as nameless:
            assert page_of(nameless, exporter).status_code == 401
        with client_of(web, auth=(USER, PASSWORD)) as stranger, pytest.raises(httpx.TransportError):
            page_of(stranger, exporter)

    with serving(
        web.write(users=users, client_auth_type=required, client_ca_file="ca.pem", min_version="TLS13")
    ) as exporter:
        web.write(client_auth_type=required, client_ca_file="ca.pem", min_version="TLS13")
        refused(exporter)
        web.write(users=users, min_version="TLS13")
        refused(exporter)
        web.write(users=users, client_auth_type=required, client_ca_file="ca.pem")
        refused(exporter)


def test_a_changed_password_counts_on_open_connections_too(web: Web) -> None:
    with (
        serving(web.write(tls=False, users={USER: hashed(PASSWORD)})) as exporter,
        httpx.Client(trust_env=False, timeout=WITHIN_S) as client,
    ):

        def status(password: str) -> int:
            return client.get(f"{exporter.url}/metrics", auth=(USER, password)).status_code

        assert (status(PASSWORD), status("the next one")) == (200, 401)
        web.write(tls=False, users={USER: hashed("the next one")})
        wait_until(lambda: status("the next one") == 200, "the new password")
        assert status(PASSWORD) == 401
        # A file that is broken takes nothing away.
        web.file.write_text("")
        time.sleep(1.5)  # longer than two looks at it are apart
        assert (status("the next one"), status(PASSWORD)) == (200, 401)


def test_guesses_that_are_being_hashed_do_not_stall_a_scraper(web: Web) -> None:
    # Hashing what is guessed takes many times as long as all of the scraper's requests.
    users = {USER: hashed(PASSWORD), "other": hashed("other", cost=14)}
    with (
        serving(web.write(tls=False, users=users)) as exporter,
        httpx.Client(auth=(USER, PASSWORD), trust_env=False, timeout=WITHIN_S) as client,
        ThreadPoolExecutor(8) as guessers,
    ):
        assert page_of(client, exporter, "/healthz").status_code == 200

        def guess(number: int) -> int:
            auth = ("other", f"guess {number}")
            return httpx.get(f"{exporter.url}/healthz", auth=auth, trust_env=False, timeout=WITHIN_S).status_code

        guesses = [guessers.submit(guess, number) for number in range(8)]
        wait_until(lambda: exporter.passwords.waiting == 4, "as many guesses as have room")
        answers = [page_of(client, exporter, "/healthz").status_code for _ in range(5)]
        left = exporter.passwords.waiting

    assert answers == [200] * 5
    assert left >= 2
    assert {one.result() for one in guesses} <= {401, 503}


def test_a_file_that_cannot_be_used_keeps_it_from_starting(web: Web) -> None:
    (web.folder / "server.key").unlink()
    with (
        pytest.raises(SettingsError, match=r"server\.key, which are no certificate with its key"),
        serving(web.write()),
    ):
        pytest.fail("it serves")


def test_no_password_is_logged(web: Web, capsys: pytest.CaptureFixture[str]) -> None:
    encoded = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    with (
        serving(web.write(tls=False, users={USER: hashed(PASSWORD)})) as exporter,
        httpx.Client(auth=(USER, PASSWORD), trust_env=False, timeout=WITHIN_S) as client,
    ):
        page = page_of(client, exporter)
    said = "".join(capsys.readouterr())
    assert page.status_code == 200
    for secret in (PASSWORD, encoded):
        assert secret not in said + page.text


def shown_certificate(exporter: Exporter) -> str:
    return ssl.get_server_certificate(("127.0.0.1", exporter.port), timeout=WITHIN_S)


def gets_a_page(web: Web, exporter: Exporter, pair: Pair) -> bool:
    with client_of(web, pair) as client:
        try:
            return page_of(client, exporter).status_code == 200
        except httpx.TransportError:
            return False
