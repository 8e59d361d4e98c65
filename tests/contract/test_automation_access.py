"""Who may call the automation service: every kind of credentials, their change, and a real Alertmanager with them."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from pathlib import Path
from typing import Any

import bcrypt
import httpx
import pytest
import yaml

from automation.access import Access
from automation.signature import SIGNATURE_HEADER, TIMESTAMP_HEADER, TOLERATED_S, signature_of
from automation.webhook import GRAFANA_PATH, WEBHOOK_PATH
from drill.children import Children
from drill.monitoring import Alertmanager
from sluicegate.errors import SettingsError
from sluicegate.service_settings import AutomationSettings
from sluicegate.web import serving
from tests.automation_parts import RECOVERY, Parts
from tests.certificates import Authority
from tests.webhooks import fire, post, recorded, served, still

OLD, NEW = "an-old-token-of-the-service", "a-new-token-of-the-service"
USER, PASSWORD = "alertmanager", "s3cret-of-alertmanager"
SECRET = "what-grafana-signs-with-here"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def web_config(folder: Path, **tls: str) -> Path:
    """Write a web-config file with a user, and with TLS where anything of it is named."""
    body: dict[str, Any] = {"basic_auth_users": {USER: bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}}
    if tls:
        body["tls_server_config"] = {"cert_file": "server.pem", "key_file": "server.key", **tls}
    return written(folder / "web.yaml", yaml.safe_dump(body))


async def code_of(client: httpx.AsyncClient, path: str = WEBHOOK_PATH, **headers: str) -> int:
    answer = await client.post(path, content=recorded("01"), headers=headers)
    assert not answer.is_redirect
    return answer.status_code


def test_two_tokens_count_while_one_takes_the_other_s_place(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_LOOK_EVERY_S", 0.05)
    file = written(tmp_path / "token", f"{OLD}\n")

    async def codes(client: httpx.AsyncClient) -> list[int]:
        return [await code_of(client, Authorization=f"Bearer {token}") for token in (OLD, NEW)]

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts, token_file=file) as client:
            assert await codes(client) == [202, 401]
            for text, expected in ((f"{NEW}\n{OLD}\n", [202, 202]), (f"{NEW}\n", [401, 202])):
                file.write_text(text)
                end = time.monotonic() + 10
                while await codes(client) != expected:
                    assert time.monotonic() < end, f"the tokens {text!r} were not taken"
                    await asyncio.sleep(0.05)
            kept = parts.client.xlen("inbox")
            assert await code_of(client) == 401
            assert parts.client.xlen("inbox") == kept
            assert (parts.figure("webhook_requests_total", code="401") or 0) > 2

    asyncio.run(scenario())


@pytest.mark.parametrize("text", ["", "short\n", f"{OLD}\n{NEW}\n{SECRET}\n", "a token of many words\n", "\xff" * 20])
def test_a_file_that_holds_no_token_keeps_the_service_from_starting(redis_url: str, tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(text.encode("latin-1"))

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts, token_file=file):
            pass

    with pytest.raises(SettingsError, match="does not hold one bearer token or two"):
        asyncio.run(scenario())


def test_a_name_and_its_password_do_as_well_as_a_token_and_nothing_less(redis_url: str, tmp_path: Path) -> None:
    file = web_config(tmp_path)

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts, token=OLD, web_config_file=file) as client:
            right, wrong = httpx.BasicAuth(USER, PASSWORD), httpx.BasicAuth(USER, "wrong")
            answer = await client.post(WEBHOOK_PATH, content=recorded("01"), auth=right)
            assert answer.status_code == 202
            assert await code_of(client, Authorization=f"bearer {OLD}") == 202  # a scheme has no case (RFC 9110)
            for path in (WEBHOOK_PATH, "/v1/runs", "/metrics", "/healthz"):
                for auth in (None, wrong, httpx.BasicAuth("stranger", PASSWORD)):
                    answer = await client.request("GET", path, auth=auth)
                    assert answer.status_code == 401, path
                    assert answer.headers["www-authenticate"].startswith("Bearer realm=")
                    assert "Basic realm=" in answer.headers["www-authenticate"]
            assert (await client.get("/metrics", auth=right)).status_code == 200

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("tls", "more", "anybody"),
    [
        (None, {}, True),
        ({}, {}, True),
        ({"client_auth_type": "VerifyClientCertIfGiven"}, {}, True),
        ({"client_auth_type": "RequireAndVerifyClientCert"}, {}, False),
        (None, {"token": OLD}, False),
        ({}, {"token": OLD}, False),
    ],
)
def test_tls_alone_keeps_nobody_out(
    tls: dict[str, str] | None, more: dict[str, Any], anybody: bool, tmp_path: Path
) -> None:
    file = None
    if tls is not None:
        authority = Authority(tmp_path)
        pair = authority.server()
        own = {"cert_file": str(pair.cert), "key_file": str(pair.key)}
        asks = {"client_ca_file": str(authority.ca)} if tls else {}
        file = written(tmp_path / "web.yaml", yaml.safe_dump({"tls_server_config": own | tls | asks}))
    access = Access(AutomationSettings(web_config_file=file, **more))
    assert access.hears_anybody is anybody
    access.close()


def grafana(change: dict[str, Any] | None = None) -> bytes:
    """Give a body as Grafana's alerting posts it: Alertmanager's, of version 1 and with fields of its own."""
    body = json.loads(recorded("05"))
    for alert in body["alerts"]:
        alert |= {"values": {"A": 27.9}, "valueString": "[ var='A' value=27.9 ]", "silenceURL": "", "dashboardURL": ""}
    body |= {"version": "1", "orgId": 1, "title": "[FIRING:1]", "state": "alerting", "message": "**Firing**"}
    return json.dumps(body | (change or {})).encode()


def test_what_grafana_signs_is_taken_and_nothing_that_it_did_not(redis_url: str, tmp_path: Path) -> None:
    file = written(tmp_path / "secret", f"{SECRET}\n{NEW}\n")
    body, now_s = grafana(), int(time.time())

    async def posted(
        client: httpx.AsyncClient, secret: str, at_s: object, path: str = GRAFANA_PATH, sent: bytes = body
    ) -> int:
        headers = {SIGNATURE_HEADER: signature_of(secret.encode(), str(at_s), body)}
        headers |= {TIMESTAMP_HEADER: str(at_s)} if at_s != "" else {}
        return (await client.post(path, content=sent, headers=headers)).status_code

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts, grafana_secret_file=file) as client:
            assert await posted(client, OLD, now_s) == 401
            assert await posted(client, SECRET, now_s, sent=body + b" ") == 401
            for at_s in (now_s - TOLERATED_S - 60, now_s + TOLERATED_S + 60, "", "now", "1e9", -now_s):
                assert await posted(client, SECRET, at_s) == 401, at_s
            # Alertmanager signs nothing, so a signature opens no other page.
            for path in (WEBHOOK_PATH, "/v1/runs"):
                assert await posted(client, SECRET, now_s, path=path) == 401
            assert await code_of(client, path=GRAFANA_PATH) == 401
            assert parts.store.episodes() == ()

            assert await posted(client, SECRET, now_s) == 202
            assert await posted(client, NEW, now_s, path=f"{GRAFANA_PATH}/") == 202
            (episode,) = parts.store.episodes()
            assert (episode.source, episode.runbook) == ("grafana", RECOVERY.name)

    asyncio.run(scenario())


def test_each_sender_s_path_reads_that_sender_s_bodies_alone(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            assert (await post(client, grafana(), path=GRAFANA_PATH)).status_code == 202
            assert (await post(client, recorded("05"))).status_code == 202
            for body, path in ((grafana(), WEBHOOK_PATH), (recorded("05"), GRAFANA_PATH)):
                answer = await post(client, body, path=path)
                assert answer.status_code == 400
                assert "only version" in answer.json()["error"]
            assert (await client.get(GRAFANA_PATH)).status_code == 405
            # One alert of both is two episodes: a fingerprint is a system's own.
            assert sorted(episode.source for episode in parts.store.episodes()) == ["alertmanager", "grafana"]

    asyncio.run(scenario())


ROUTING = """
route: {receiver: both, group_wait: 0s, group_interval: 1s}
receivers:
- name: both
  webhook_configs:
  - url: %(url)s
    http_config:
      authorization: {credentials_file: %(token)s}
      tls_config: {ca_file: %(ca)s, cert_file: %(cert)s, key_file: %(key)s}
  - url: %(url)s/
    http_config:
      basic_auth: {username: %(user)s, password_file: %(password)s}
      tls_config: {ca_file: %(ca)s, cert_file: %(cert)s, key_file: %(key)s}
"""


def test_a_real_alertmanager_delivers_with_a_token_a_password_and_its_certificate(
    redis_url: str, tmp_path: Path, children: Children
) -> None:
    authority = Authority(tmp_path)
    authority.server()
    pair = authority.client()
    file = web_config(tmp_path, client_auth_type="RequireAndVerifyClientCert", client_ca_file="ca.pem")
    token = written(tmp_path / "token", OLD)
    trusting = ssl.create_default_context(cafile=str(authority.ca))
    trusting.load_cert_chain(*pair.files)

    async def delivered(parts: Parts) -> None:
        def both() -> bool:
            return (parts.figure("webhook_requests_total", code="202") or 0) >= 2

        await parts.until(both, "both deliveries", within_s=20)

    async def scenario() -> None:
        async with (
            still(redis_url, tmp_path) as parts,
            served(parts, trusting=trusting, token_file=token, web_config_file=file) as client,
        ):
            names: dict[str, object] = {
                "url": f"{client.base_url}".rstrip("/") + WEBHOOK_PATH,
                "user": USER,
                "ca": authority.ca,
            }
            names |= {"token": token, "ca": authority.ca, "cert": pair.cert, "key": pair.key}
            names["password"] = written(tmp_path / "password", PASSWORD)
            alertmanager = Alertmanager(children, ROUTING % names)
            await asyncio.to_thread(alertmanager.start)
            await asyncio.to_thread(fire, alertmanager.address)
            await delivered(parts)
            (episode,) = parts.store.episodes()
            assert episode.name == "QueueAgeHigh"
            assert parts.figure("webhook_requests_total", code="401") is None
            # Without the certificate there is no conversation, whatever else is known.
            bare = ssl.create_default_context(cafile=str(authority.ca))
            async with httpx.AsyncClient(verify=bare, trust_env=False) as stranger:
                with pytest.raises(httpx.TransportError):
                    await stranger.post(str(names["url"]), headers={"Authorization": f"Bearer {OLD}"}, content=b"{}")

    asyncio.run(scenario())
