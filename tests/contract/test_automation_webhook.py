"""Alertmanager's webhook over real HTTP: recorded payloads, repeats, what cannot be kept, and who may ask."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from automation.bodies import BODY_LIMIT, read_body
from automation.webhook import WEBHOOK_PATH
from drill.server import QueueServer, ServerOptions
from tests.automation_parts import ON_BOTH, RECOVERY, Parts, quick
from tests.servers import MakeServer
from tests.webhooks import drained, post, recorded, served, still


def test_the_same_post_twice_is_one_episode_each_and_one_run(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            drained(parts)
            first = await post(client, recorded("01"))
            second = await post(client, recorded("01"), path=f"{WEBHOOK_PATH}/")

            assert (first.status_code, second.status_code) == (202, 202)
            (run,) = parts.store.runs()
            assert sorted(one["state"] for one in first.json()["runs"]) == ["attached", "moved"]
            assert {one["state"] for one in second.json()["runs"]} == {"attached"}
            assert {one["duplicate"] for one in first.json()["runs"]} == {False}
            assert {one["duplicate"] for one in second.json()["runs"]} == {True}
            assert {one["id"] for one in first.json()["runs"] + second.json()["runs"]} == {run.run_id}
            assert (run.trigger, run.actor, run.reason) == ("webhook", "alertmanager", "alert QueueAgeHigh")
            assert [episode.number for episode in parts.store.episodes()] == [1, 1]
            assert parts.client.xlen("inbox") == 2

    asyncio.run(scenario())


def test_posts_at_the_same_time_open_one_run(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            drained(parts)
            answers = await asyncio.gather(*(post(client, recorded("01")) for _ in range(8)))
            assert {answer.status_code for answer in answers} == {202}
            states = [one["state"] for answer in answers for one in answer.json()["runs"]]
            assert states.count("moved") == 1
            assert set(states) == {"moved", "attached"}
            assert len(parts.store.runs()) == 1

    asyncio.run(scenario())


@ON_BOTH
def test_an_alert_that_the_figures_do_not_confirm_waits_and_opens_once_they_do(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        parts = Parts(redis_url, quick(tmp_path), controller=False, executor=False, episodes=True, workers=0)
        async with parts, served(parts) as client:
            answer = await post(client, recorded("05"))
            assert [one["state"] for one in answer.json()["runs"]] == ["waiting"]
            assert parts.state() == ("admit", None, None)
            parts.submit(3, "test-patch")

            await parts.until(parts.store.runs, "the run, once the jobs are old enough")

            assert parts.look().queue_age_p95_seconds >= 2.5
            assert parts.state() == ("drain", None, None)
            (episode,) = parts.store.episodes()
            assert episode.run == parts.store.runs()[0].run_id

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["03", "04", "06"])
def test_resolved_touches_no_run_no_gate_and_no_pin(name: str, redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            run = parts.open_run()
            before = (parts.look().gate, parts.history(run))

            for _ in range(2):
                answer = await post(client, recorded(name))
                assert answer.status_code == 202
                assert answer.json()["runs"] == []

            gate = parts.look().gate
            assert (gate.epoch, gate.pin, gate.drain_state) == (before[0].epoch, before[0].pin, before[0].drain_state)
            assert parts.history(run) == before[1]
            assert parts.store.episodes() == ()

    asyncio.run(scenario())


def test_an_episode_ends_and_a_refire_is_another_but_a_late_repeat_is_not(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            await post(client, recorded("01"))
            assert {one.number for one in parts.store.episodes()} == {1}
            await post(client, recorded("02"))
            (left,) = parts.store.episodes()
            assert json.loads(left.labels)["class"] == "test-patch"

            late = await post(client, recorded("01"))
            assert {one["duplicate"] for one in late.json()["runs"]} == {True}
            assert len(parts.store.episodes()) == 1, "the late repeat of the ended one opened nothing"

            await post(client, recorded("05"))
            numbers = {json.loads(one.labels)["class"]: one.number for one in parts.store.episodes()}
            assert numbers == {"lint-fix": 2, "test-patch": 1}

            await post(client, recorded("02"))
            assert len(parts.store.episodes()) == 2, "the late end of the first episode ends no second one"
            await post(client, recorded("06"))
            await post(client, recorded("03"))
            assert parts.store.episodes() == ()

    asyncio.run(scenario())


def test_an_end_that_overtakes_its_firing_leaves_nothing_open(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            await post(client, recorded("06"))
            answer = await post(client, recorded("05"))
            assert answer.status_code == 202
            assert parts.store.episodes() == ()
            assert parts.store.runs() == ()

    asyncio.run(scenario())


def test_an_episode_of_which_nothing_is_heard_any_more_is_forgotten(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            await post(client, recorded("01"))
            eight_days_ago_ms = parts.look().at_ms - 8 * 86_400_000
            (silent, heard) = (episode.episode_id for episode in parts.store.episodes())
            parts.client.zadd("episodes:open", {silent: eight_days_ago_ms, heard: eight_days_ago_ms})
            body = json.loads(recorded("01"))
            body["alerts"] = [one for one in body["alerts"] if one["fingerprint"] in heard]
            await post(client, json.dumps(body).encode())
            assert [episode.episode_id for episode in parts.store.episodes()] == [heard]

    asyncio.run(scenario())


@ON_BOTH
def test_an_alert_that_asks_for_nothing_here_is_taken_and_matches_none(redis_url: str, tmp_path: Path) -> None:
    def elsewhere(alert: dict[str, Any]) -> None:
        alert["labels"]["queue"] = "another"

    def unasked(alert: dict[str, Any]) -> None:
        alert["labels"]["runbook"] = "reboot-everything"

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            for change in (elsewhere, unasked):
                answer = await post(client, recorded("01", change))
                assert (answer.status_code, answer.json()["matched"], answer.json()["runs"]) == (202, 0, [])
            assert parts.store.episodes() == ()

    asyncio.run(scenario())


@ON_BOTH
def test_labels_stay_data(redis_url: str, tmp_path: Path) -> None:
    nasty = {"note": "a\r\nSET drain_state admit\r\n", "hint": "{{ run.id }} {% for x in y %}", "odd": "\ud800\x00"}

    def change(alert: dict[str, Any]) -> None:
        alert["labels"] |= nasty | {"alertname": "Odd\r\n{{ queue }}\ud800"}

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            drained(parts)
            answer = await post(client, recorded("05", change))
            assert answer.status_code == 202
            (episode,) = parts.store.episodes()
            assert {name: json.loads(episode.labels)[name] for name in nasty} == nasty
            (run,) = parts.store.runs()
            assert run.reason == "alert Odd\r\n{{ queue }}?"
            assert parts.state() == ("drain", None, None)

    asyncio.run(scenario())


@ON_BOTH
def test_a_thousand_alerts_are_kept_and_answered_within_a_second(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        body = json.loads(recorded("05"))
        (alert,) = body["alerts"]
        body["alerts"] = [{**alert, "fingerprint": f"{number:016x}"} for number in range(1000)]
        body["truncatedAlerts"] = 7
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts, served(parts) as client:
            parts.open_run()
            began = time.monotonic()
            answer = await post(client, json.dumps(body).encode())
            assert time.monotonic() - began < 1.0
            assert (answer.status_code, answer.json()["matched"]) == (202, 1000)
            assert parts.client.zcard("episodes:open") == 1000

    asyncio.run(scenario())


def test_a_service_that_may_call_no_function_is_not_ready(
    server: QueueServer, tmp_path: Path, make_server: MakeServer
) -> None:
    async def scenario() -> None:
        own = make_server(ServerOptions(kind=server.kind))
        async with still(own.url, tmp_path) as parts, served(parts) as client:
            assert (await client.get("/readyz")).status_code == 200
            denied = ("-fcall", "-fcall_ro", "-eval", "-eval_ro", "-evalsha", "-evalsha_ro")
            parts.client.execute_command("ACL", "SETUSER", "default", *denied)
            assert parts.client.ping()
            assert (await client.get("/readyz")).status_code == 503
            parts.client.execute_command("ACL", "SETUSER", "default", "+@all")
            assert (await client.get("/readyz")).status_code == 200

    asyncio.run(scenario())


@ON_BOTH
def test_what_cannot_be_kept_is_answered_503_and_what_is_kept_202(
    server: QueueServer, tmp_path: Path, make_server: MakeServer
) -> None:
    async def scenario() -> None:
        own = make_server(ServerOptions(kind=server.kind))
        async with still(own.url, tmp_path) as parts, served(parts) as client:
            own.kill()
            assert (await post(client, recorded("01"))).status_code == 503
            assert (await client.get("/readyz")).status_code == 503
            assert (await client.get("/healthz")).status_code == 200
            own.restart()
            # Empty now: no queue, so nothing may be written, and nothing was kept.
            answer = await post(client, recorded("01"))
            assert answer.status_code == 503
            assert "is not open" in answer.json()["error"]
            assert parts.client.keys("*") == []

    asyncio.run(scenario())


@ON_BOTH
def test_what_is_not_a_webhook_is_refused_with_its_reason(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            newer = json.loads(recorded("01")) | {"version": "5"}
            hollow = json.loads(recorded("01")) | {"alerts": []}
            bodies = {b"": "not JSON", b"\xff{": "not JSON", b"[" * 100_000: "not JSON", b"[]": "valid dictionary"}
            bodies |= {json.dumps(newer).encode(): "version '5'", json.dumps(hollow).encode(): "alerts"}
            odd = json.loads(recorded("01"))
            odd["alerts"][0]["labels"]["\ud800"] = 1
            bodies[json.dumps(odd).encode()] = "alerts.0.labels."
            for body, reason in bodies.items():
                answer = await post(client, body)
                assert answer.status_code == 400, body[:20]
                assert reason in answer.json()["error"]
            assert (await client.get(WEBHOOK_PATH)).status_code == 405
            assert (await client.get(f"{WEBHOOK_PATH}/")).status_code == 405
            for path in (f"{WEBHOOK_PATH}//", "/webhooks", "/webhooks/", "//webhooks/alertmanager"):
                answer = await post(client, recorded("01"), path=path)
                assert answer.status_code in (404, 405), path
                assert not answer.is_redirect
            counted = parts.figure("webhook_requests_total", code="400")
            assert counted == len(bodies)
            assert parts.client.xlen("inbox") == 0

    asyncio.run(scenario())


async def said_to(client: httpx.AsyncClient, head: str, body: bytes = b"") -> str:
    """Send a request by hand, whose body may be missing, and give the answer's first line."""
    host, port = client.base_url.host, client.base_url.port
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"POST {WEBHOOK_PATH} HTTP/1.1\r\nHost: {host}\r\n{head}\r\n\r\n".encode() + body)
    line = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    return line.decode().strip()


@ON_BOTH
def test_too_large_a_body_is_refused_before_it_is_read(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            announced = await said_to(client, f"Content-Length: {BODY_LIMIT + 1}")
            assert announced.startswith("HTTP/1.1 413")

            async def endless() -> AsyncIterator[bytes]:
                for _ in range(BODY_LIMIT // 65_536 + 2):
                    yield b" " * 65_536

            answer = await client.post(WEBHOOK_PATH, content=endless())
            assert answer.status_code == 413

    asyncio.run(scenario())


@ON_BOTH
def test_without_the_right_token_nobody_is_heard(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts, token="s3cret-ü") as client:
            drained(parts)
            # The body never comes, so it can't have been waited for.
            assert (await said_to(client, "Content-Length: 5000000")).startswith("HTTP/1.1 401")
            for wrong in ("", "Bearer", "Bearer s3cret", "Basic s3cret-ü", "Bearers s3cret-ü", "s3cret-ü"):
                head = {b"Authorization": wrong.encode()}
                answer = await client.post(WEBHOOK_PATH, content=recorded("01"), headers=head)
                assert answer.status_code == 401
                assert (await client.get("/v1/runs", headers=head)).status_code == 401
            assert parts.client.xlen("inbox") == 0
            for path in ("/healthz", "/readyz", "/metrics"):
                assert (await client.get(path)).status_code == 200
            head = {b"Authorization": "Bearer s3cret-ü".encode()}
            answer = await client.post(WEBHOOK_PATH, content=recorded("01"), headers=head)
            assert answer.status_code == 202
            assert "s3cret" not in (await client.get("/metrics")).text

    asyncio.run(scenario())


@ON_BOTH
def test_runs_are_opened_approved_and_aborted_by_name_over_http(redis_url: str, tmp_path: Path) -> None:
    named = {"actor": "ada", "reason": "the provider is down"}

    async def scenario() -> None:
        async with Parts(redis_url, quick(tmp_path), workers=0) as parts, served(parts) as client:
            refused = await client.post("/v1/runs", json={"runbook": RECOVERY.name, "actor": "", "reason": "x"})
            assert refused.status_code == 422
            for text in ("ada\x1b[2J", "ada\n", "a\x00da", "ada\x7f", "a\x85da", "a\u2028da"):
                for spoilt in ({**named, "actor": text}, {**named, "reason": text}):
                    refused = await client.post("/v1/runs", json={"runbook": RECOVERY.name, **spoilt})
                    assert refused.status_code == 422, text
            assert (await client.post("/v1/runs", json={"runbook": "nope", **named})).status_code == 404
            opened = await client.post("/v1/runs", json={"runbook": RECOVERY.name, **named})
            assert opened.status_code == 202
            run = opened.json()["run"]
            again = await client.post("/v1/runs", json={"runbook": RECOVERY.name, **named})
            assert (again.status_code, again.json()["answer"]) == (409, "run_live")
            await parts.until_step(run, "fix")

            for step in ("reboot", "4 reboot", "fix 4", "400 fix", "4  fix", ""):
                bad = await client.post(f"/v1/runs/{run}/approve", json={"step": step, **named})
                assert bad.status_code == 422, step
            other = await client.post(f"/v1/runs/{run}/approve", json={"step": "5 fix", **named})
            assert other.status_code == 409
            early = await client.post(f"/v1/runs/{run}/approve", json={"step": "canary", **named})
            assert early.status_code == 409
            assert early.json() == {
                "answer": "not_waiting",
                "error": f"Run {run} does not wait for a person at step canary, so nothing was changed.",
            }
            approved = await client.post(f"/v1/runs/{run}/approve", json={"step": "fix", **named})
            assert approved.json() == {"answer": "moved"}
            assert (await client.get(f"/v1/runs/{run}")).json()["approvals"] == {"4 fix": "ada: the provider is down"}
            assert (await client.post("/v1/runs/other/abort", json=named)).status_code == 404
            aborted = await client.post(f"/v1/runs/{run}/abort", json=named)
            assert aborted.json() == {"answer": "moved", "drain_state": "drain", "pin": "rolled_back"}
            listed = (await client.get("/v1/runs")).json()["runs"]
            assert [one["run_id"] for one in listed] == [run]
            assert (await client.get("/v1/runs/none")).status_code == 404

    asyncio.run(scenario())


@ON_BOTH
def test_the_kill_switch_and_the_cooldown_refuse_an_alerts_run_and_say_so(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            drained(parts)
            parts.store.kill_switch(on=True, actor="ada", reason="maintenance")
            answer = await post(client, recorded("05"))
            assert [one["state"] for one in answer.json()["runs"]] == ["refused"]
            assert parts.state() == ("drain", "run_refused", None)
            (episode,) = parts.store.episodes()
            assert episode.outcome == "refused: kill_switch"

    asyncio.run(scenario())


async def _raw(client: httpx.AsyncClient, announced: int, sent: bytes) -> tuple[asyncio.StreamReader, Any]:
    """Open a connection and send the head of a post and a part of its body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    head = f"POST {WEBHOOK_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {announced}\r\n\r\n"
    writer.write(head.encode() + sent)
    await writer.drain()
    return reader, writer


def test_a_body_that_does_not_come_is_given_up(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_body, "__defaults__", (0.3,))

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            reader, writer = await _raw(client, 1000, b"{")
            async with asyncio.timeout(5):
                answer = await reader.read()  # to the end: the connection is closed
            assert answer.startswith(b"HTTP/1.1 408")
            assert b"not there after 0.3 s" in answer
            writer.close()
            assert parts.figure("webhook_requests_total", code="408") == 1
            assert (await post(client, recorded("01"))).status_code == 202

    asyncio.run(scenario())


def test_a_sender_that_hangs_up_in_its_body_is_no_failure_of_this_service(
    redis_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            _, writer = await _raw(client, 1000, b"{")
            writer.close()
            await parts.until(lambda: parts.figure("webhook_requests_total", code="400") == 1, "the answer to nobody")
            assert parts.client.exists("inbox") == 0

    asyncio.run(scenario())
    assert [record for record in caplog.records if record.exc_info] == []


def test_labels_are_kept_up_to_a_size(redis_url: str, tmp_path: Path) -> None:
    def swell(alert: dict[str, Any]) -> None:
        alert["labels"] |= {f"x{number}": "y" * 20_000 for number in range(100)} | {"z" * 5000: "z"}

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            answer = await post(client, recorded("01", swell))
            assert (answer.status_code, answer.json()["matched"]) == (202, 2)
            assert parts.client.memory_usage("inbox") < 200_000
            assert {episode.runbook for episode in parts.store.episodes()} == {RECOVERY.name}

    asyncio.run(scenario())


def test_a_late_end_and_its_repeat_start_nothing_on_a_queue_that_is_open_again(redis_url: str, tmp_path: Path) -> None:
    """Scenario 5 of the field's reports: a resolved that acted deleted what had just recovered."""

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            run = parts.open_run()
            parts.store.order("open_end_run", "ada", "it is mended")
            before = (parts.look().gate, parts.history(run), parts.reasons())
            for _ in range(2):
                answer = await post(client, recorded("06"))
                assert (answer.status_code, answer.json()["runs"]) == (202, [])
            await parts.episodes.look()
            assert (parts.look().gate, parts.history(run), parts.reasons()) == before
            assert parts.client.exists("lock:run") == 0
            assert parts.store.runs() == (parts.history(run).run,)

    asyncio.run(scenario())


def test_a_sender_that_hangs_up_before_the_answer_stops_nothing(redis_url: str, tmp_path: Path) -> None:
    """Scenario 2: whoever posts may be cut off by its own timeout; what arrived is kept and acted upon."""

    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client:
            drained(parts)
            body = recorded("01")
            _, writer = await _raw(client, len(body), body)
            writer.close()
            await parts.until(parts.store.runs, "the run that was asked for")
            # The sender has heard nothing, so it sends the same again.
            again = await post(client, body)
            (run,) = parts.store.runs()
            assert {one["id"] for one in again.json()["runs"]} == {run.run_id}
            assert {one["state"] for one in again.json()["runs"]} == {"attached"}

    asyncio.run(scenario())
