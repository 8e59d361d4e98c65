"""Real Alertmanagers and this service: what becomes of a notification that could not be taken at once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from automation.webhook import WEBHOOK_PATH
from drill.children import Children
from drill.monitoring import Alertmanager
from drill.server import AppendFsync, ServerKind, ServerOptions
from sluicegate.web import serving
from tests.automation_parts import Parts
from tests.servers import MakeServer
from tests.small_server import Handler
from tests.small_server import served as answering
from tests.webhooks import drained, fire, served, still

ROUTING = """
route: {receiver: hook, group_wait: 0s, group_interval: 1s}
receivers:
- name: hook
  webhook_configs: [{url: "%s"}]
"""
GUARDED = ROUTING.replace('"}]', '", http_config: {authorization: {credentials_file: %s}}}]')
TOKEN = "the-token-of-this-service"


def answered(parts: Parts, code: int) -> float:
    """Give how many notifications were answered so."""
    return parts.figure("webhook_requests_total", code=str(code)) or 0


def delivered(alertmanager: Alertmanager) -> tuple[float, float]:
    """Give how many notifications an Alertmanager says it sent, and how many of them failed."""
    text = httpx.get(f"http://{alertmanager.address}/metrics", trust_env=False).text
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    names = (f'alertmanager_notifications_{what}{{integration="webhook"}}' for what in ("total", "failed_total"))
    return float(figures[next(names)]), float(figures[next(names)])


def test_two_peers_after_an_outage_are_one_episode_and_one_run(make_server: MakeServer, tmp_path: Path) -> None:
    """Scenario 1: two that have not heard of each other deliver the same, and neither was told a lie in between."""

    async def scenario(first: Children, second: Children) -> None:
        own = make_server(ServerOptions(kind=ServerKind.REDIS, append_only=True, append_fsync=AppendFsync.ALWAYS))
        async with still(own.url, tmp_path) as parts, served(parts) as client:
            drained(parts)
            url = f"{client.base_url}".rstrip("/") + WEBHOOK_PATH
            peers = [Alertmanager(children, ROUTING % url) for children in (first, second)]
            for peer in peers:
                await asyncio.to_thread(peer.start)
            own.kill()
            for peer in peers:
                await asyncio.to_thread(fire, peer.address)
            await parts.until(lambda: answered(parts, 503) >= 4, "both peers' tries")
            own.restart()
            await parts.until(lambda: answered(parts, 202) >= 2, "both peers' deliveries")

            assert parts.client.xlen("inbox") >= 2
            (episode,) = parts.store.episodes()
            (run,) = parts.store.runs()
            assert (episode.number, episode.run) == (1, run.run_id)
            assert parts.reasons().count("run_opened") == 1
            assert parts.client.hget(f"episode:{episode.episode_id}", "deliveries") >= "2"

    with Children() as first, Children() as second:
        asyncio.run(scenario(first, second))


def test_a_refused_token_costs_one_interval_and_no_notification(
    redis_url: str, tmp_path: Path, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_LOOK_EVERY_S", 0.05)
    known, sent = tmp_path / "known", tmp_path / "sent"
    known.write_text("another-token-than-that")
    sent.write_text(TOKEN)

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts, token_file=known) as client:
            url = f"{client.base_url}".rstrip("/") + WEBHOOK_PATH
            alertmanager = Alertmanager(children, GUARDED % (url, sent))
            await asyncio.to_thread(alertmanager.start)
            await asyncio.to_thread(fire, alertmanager.address)
            await parts.until(lambda: answered(parts, 401) >= 2, "a try each interval")
            assert parts.store.episodes() == ()
            known.write_text(TOKEN)
            await parts.until(parts.store.episodes, "the notification after all")

    asyncio.run(scenario())


def test_a_redirect_in_front_of_it_is_no_delivery(redis_url: str, tmp_path: Path, children: Children) -> None:
    """Alertmanager follows a 302 with a GET that has no body: were that answered 200, it would count as delivered."""

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            url = f"{client.base_url}".rstrip("/") + WEBHOOK_PATH

            class Ingress(Handler):
                def respond(self) -> None:
                    self.body()
                    self.send_response(302)
                    self.send_header("Location", url)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            with answering(Ingress) as address:
                alertmanager = Alertmanager(children, ROUTING % f"http://{address}/hook")
                await asyncio.to_thread(alertmanager.start)
                await asyncio.to_thread(fire, alertmanager.address)
                await parts.until(lambda: delivered(alertmanager)[0] >= 1, "a notification")
                sent, failed = delivered(alertmanager)
            assert failed == sent
            assert parts.client.exists("inbox") == 0

    asyncio.run(scenario())


def test_a_receiver_whose_name_is_quoted_is_heard_as_any_other(
    redis_url: str, tmp_path: Path, children: Children
) -> None:
    """Alertmanager quotes its receivers' names as for a regex: `team.x` arrives as `team\\.x`."""
    posted: list[bytes] = []

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            drained(parts)
            url = f"{client.base_url}".rstrip("/") + WEBHOOK_PATH

            class Between(Handler):
                def respond(self) -> None:
                    posted.append(self.body())
                    self.answer(httpx.post(url, content=posted[-1], trust_env=False).status_code)

            with answering(Between) as address:
                routing = ROUTING.replace("hook,", "team.x,").replace("name: hook", "name: team.x")
                alertmanager = Alertmanager(children, routing % f"http://{address}/hook")
                await asyncio.to_thread(alertmanager.start)
                await asyncio.to_thread(fire, alertmanager.address)
                await parts.until(parts.store.runs, "the run")
            assert json.loads(posted[0])["receiver"] == r"team\.x"
            (episode,) = parts.store.episodes()
            (run,) = parts.store.runs()
            assert (episode.run, run.actor, run.reason) == (run.run_id, "alertmanager", "alert QueueAgeHigh")

    asyncio.run(scenario())
