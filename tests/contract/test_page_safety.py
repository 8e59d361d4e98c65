"""Who may act: what a viewer, another site, or a form of somebody else's asks for changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import bcrypt
import httpx
import pytest
import yaml

from automation.page.deeds import Deed
from automation.webhook import WEBHOOK_PATH
from tests.automation_parts import ON_BOTH, Parts
from tests.html_tree import parsed
from tests.page_forms import OWN, done, opened
from tests.webhooks import recorded, served, still

pytestmark = ON_BOTH

PASSWORD = "s3cret-of-everybody-here"
TOKEN = "a-token-of-the-service-itself"
ROLES = {"wall": "view", "bob": "operate", "ann": "approve"}
DEEDS = [f"/do/{deed}?run=run-1&step=fix&job=job-1&runbook=drain-and-recover" for deed in Deed]
BODY = {"actor": "x", "reason": "y", "runbook": "drain-and-recover", "step": "fix"}
API = ["/v1/runs", "/v1/runs/run-1/approve", "/v1/runs/run-1/abort", "/v1/runs/run-1/hold", "/v1/runs/run-1/resume"]


def passwords(folder: Path) -> Path:
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    path = folder / "web.yaml"
    path.write_text(yaml.safe_dump({"basic_auth_users": dict.fromkeys([*ROLES, "mailer"], hashed)}))
    return path


def play(
    url: str, folder: Path, scenario: Callable[[Parts, httpx.AsyncClient], Awaitable[None]], **settings: Any
) -> None:
    """Serve a queue on which nothing acts by itself, and play."""

    async def played() -> None:
        async with still(url, folder) as parts, served(parts, **settings) as client:
            await scenario(parts, client)

    asyncio.run(played())


def as_user(client: httpx.AsyncClient, name: str, password: str = PASSWORD) -> httpx.AsyncClient:
    client.auth = httpx.BasicAuth(name, password)
    return client


def unchanged(parts: Parts) -> tuple[object, ...]:
    """Give all that anybody could have changed."""
    return parts.look().gate.epoch, parts.state(), parts.store.runs(), parts.store.episodes(), parts.client.dbsize()


def test_without_credentials_nothing_is_shown_and_nothing_changes(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        parts.store.order("drain", "bob", "first")
        before = unchanged(parts)
        for wrong in (None, httpx.BasicAuth("ann", "guessed"), httpx.BasicAuth("nobody", PASSWORD)):
            client.auth = wrong or httpx.Auth()
            for address in ("/", "/live", "/runs/run-1", "/static/0/page.js", API[0], *DEEDS):
                answer = await client.get(address)
                assert (answer.status_code, "drain" in answer.text) == (401, False), address
            for address in DEEDS:
                assert (await client.post(address, data={"token": "x", "actor": "ann"}, headers=OWN)).status_code == 401
            for address in API:
                assert (await client.post(address, json=BODY)).status_code == 401
            assert (await client.post(WEBHOOK_PATH, content=recorded("01"))).status_code == 401
        assert unchanged(parts) == before

    play(redis_url, tmp_path, scenario, web_config_file=passwords(tmp_path), roles=ROLES)


def test_a_viewer_sees_everything_and_changes_nothing(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        parts.store.order("drain", "bob", "first")
        before = unchanged(parts)
        as_user(client, "wall")
        front = await client.get("/")
        assert front.status_code == 200
        assert "others act" in front.text
        assert parsed(front.text).all("a", class_="button") == []
        assert (await client.get("/v1/runs")).status_code == 200
        for address in DEEDS:
            answer = await client.get(address)
            assert answer.status_code == 403
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["cache-control"] == "no-store"
            assert (await client.post(address, data={"token": "x"}, headers=OWN)).status_code == 403
        for address in API:
            assert (await client.post(address, json=BODY)).status_code == 403
        assert (await client.post(WEBHOOK_PATH, content=recorded("01"))).status_code == 403
        assert unchanged(parts) == before

    play(redis_url, tmp_path, scenario, web_config_file=passwords(tmp_path), roles=ROLES)


def test_who_operates_closes_and_asks_and_lets_nothing_go_on(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        as_user(client, "bob")
        await done(client, "/do/drain")
        before = unchanged(parts)
        for deed in (deed for deed in Deed if deed.role == "approve"):
            assert (await client.get(f"/do/{deed}")).status_code == 403
            assert (await client.post(f"/do/{deed}", headers=OWN)).status_code == 403
        for address in API[1], API[4]:
            assert (await client.post(address, json=BODY)).status_code == 403
        assert unchanged(parts) == before
        as_user(client, "ann")
        await done(client, "/do/release")
        assert parts.state() == ("drain", None, None)

    play(redis_url, tmp_path, scenario, web_config_file=passwords(tmp_path), roles=ROLES)


def test_who_has_no_role_where_there_are_roles_may_only_notify(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        as_user(client, "mailer")
        for address in ("/", "/live", "/v1/runs", "/do/hold"):
            assert (await client.get(address)).status_code == 403
        assert (await client.get("/metrics")).status_code == 200
        assert (await client.post(WEBHOOK_PATH, content=recorded("01"))).status_code == 202

    play(redis_url, tmp_path, scenario, web_config_file=passwords(tmp_path), roles=ROLES)


def test_whose_password_it_is_acts_in_their_name_alone(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        as_user(client, "ann")
        form = await opened(client, "/do/drain")
        assert form.page.one("input", id="actor").attributes["value"] == "ann"
        assert "readonly" in form.page.one("input", id="actor").attributes
        assert (await form.send(actor="bob")).status_code == 303
        assert (await (await opened(client, "/do/hold")).send(actor="bob")).status_code == 303
        assert {entry.actor for entry in parts.store.gate_log(2)} == {"ann"}

    play(redis_url, tmp_path, scenario, web_config_file=passwords(tmp_path))


def test_a_browser_shows_the_token_as_a_password_and_its_role_counts(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        answer = await client.get("/")
        assert answer.status_code == 401
        assert "Basic realm=" in answer.headers["www-authenticate"]
        assert (await as_user(client, "ann", "wrong-token-of-the-service").get("/")).status_code == 401
        as_user(client, "ann", TOKEN)
        form = await opened(client, "/do/drain")
        assert form.fields["actor"] == "ann", "who they say they are, and may write otherwise"
        assert "readonly" not in form.page.one("input", id="actor").attributes
        assert (await client.get("/do/release")).status_code == 403
        client.auth = httpx.Auth()
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert (await client.post(API[0], json=BODY, headers=bearer)).status_code == 202
        assert (await client.post(API[1], json=BODY, headers=bearer)).status_code == 403

    play(redis_url, tmp_path, scenario, token=TOKEN, token_role="operate")


ELSEWHERE = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
]


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_another_site_changes_nothing_with_this_browser_s_password(
    redis_url: str, tmp_path: Path, headers: dict[str, str]
) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        as_user(client, "ann")
        form = await opened(client, "/do/drain")
        before = unchanged(parts)
        assert (await form.send(headers=headers)).status_code == 403
        for address in (*DEEDS, *API):
            # As a form of another site would send JSON without asking first.
            sent = {**headers, "Content-Type": "text/plain"}
            assert (await client.post(address, json=BODY, headers=sent)).status_code == 403, address
        assert (await client.post(WEBHOOK_PATH, content=recorded("01"), headers=headers)).status_code == 403
        assert unchanged(parts) == before

    play(redis_url, tmp_path, scenario, web_config_file=passwords(tmp_path))


def test_only_a_form_of_this_page_for_this_very_deed_is_taken(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        drain, hold = await opened(client, "/do/drain"), await opened(client, "/do/hold")
        before = unchanged(parts)
        for token in ("none", hold.fields["token"], drain.fields["token"][:-1] + "x"):
            assert (await drain.send(token=token)).status_code == 403
        assert (await drain.send(headers={})).status_code == 403, "no browser vouches for where it is from"
        drain.address = "/do/drain?run=other"
        assert (await drain.send()).status_code == 403
        assert (await client.post("/do/drain", content=b"\xff\xfe", headers=OWN)).status_code == 403
        assert (await client.post("/do/drain", content=b"a&" * 999, headers=OWN)).status_code == 403
        assert (await client.get("/do/drain?token=x&actor=ann&reason=y")).status_code == 200, "a GET does nothing"
        assert unchanged(parts) == before

    play(redis_url, tmp_path, scenario)


def test_a_form_of_one_person_is_nobody_else_s(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        form = await opened(as_user(client, "bob"), "/do/drain")
        as_user(client, "ann")
        before = unchanged(parts)
        assert (await form.send()).status_code == 403
        assert unchanged(parts) == before

    play(redis_url, tmp_path, scenario, web_config_file=passwords(tmp_path), roles=ROLES)


def test_without_passwords_a_name_that_may_be_pointed_here_does_nothing(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        form = await opened(client, "/do/drain")
        rebound = {"Host": "evil.example:9109", "Origin": "http://evil.example:9109", **OWN}
        answer = await form.send(headers=rebound)
        assert answer.status_code == 403
        assert "IP address or localhost" in answer.text
        assert (await client.post(API[0], json=BODY, headers=rebound)).status_code == 403
        assert parts.state() == ("admit", None, None)

    play(redis_url, tmp_path, scenario)


def test_under_a_name_with_passwords_its_own_page_acts(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        as_user(client, "ann")
        form = await opened(client, "/do/drain")
        own = {"Host": "gate.example", "Origin": "https://gate.example", **OWN}
        assert (await form.send(headers=own)).status_code == 303
        assert parts.state() == ("drain", "operator", None)

    play(redis_url, tmp_path, scenario, web_config_file=passwords(tmp_path))
