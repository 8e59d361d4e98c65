"""The fake provider as a real process: one effect a key, and a log that survives a kill."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from drill.children import Children
from drill.effects import calls_path, read_effects
from drill.readiness import answers_http

Start = Callable[..., str]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "effects.jsonl"


@pytest.fixture
def start(children: Children, log: Path) -> Start:
    def start(service_s: float = 0.0, jitter_s: float = 0.0, *further: str) -> str:
        times = ("--service-s", str(service_s), "--jitter-s", str(jitter_s))
        options = ("--log", str(log), *times, "--seed", "7", *further)
        program = (sys.executable, "-m", "drill.cli_plant", "provider")
        port = children.start_listening(
            "provider", lambda port: (*program, "--port", str(port), *options), answers_http("/healthz")
        )
        return f"http://127.0.0.1:{port}"

    return start


def complete(url: str, key: str | None = None, **body: object) -> httpx.Response:
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        return complete_with(client, key, **body)


def complete_with(client: httpx.Client, key: str | None, **body: object) -> httpx.Response:
    return client.post("/v1/complete", json=body, headers={"Idempotency-Key": key} if key else {})


async def repeat(url: str, key: str, times: int) -> list[httpx.Response]:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
        calls = (client.post("/v1/complete", headers={"Idempotency-Key": key}) for _ in range(times))
        return await asyncio.gather(*calls)


def test_answers_ok_and_records_the_effect(start: Start, log: Path) -> None:
    url = start()
    answer = complete(url, "k1", **{"class": "lint-fix"})
    assert (answer.status_code, answer.content) == (200, b'{"ok":true}')
    record = json.loads(log.read_text())
    assert abs(record.pop("ts") - time.time()) < 60
    assert record == {"key": "k1", "effect": 1, "class": "lint-fix", "canary": False}


def test_has_one_effect_for_20_concurrent_calls_with_one_key(start: Start, log: Path) -> None:
    url = start(service_s=0.3)
    answers = asyncio.run(repeat(url, "same", 20))
    assert {(answer.status_code, answer.content) for answer in answers} == {(200, b'{"ok":true}')}
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert [effect.key for effect in read_effects(log)] == ["same"]
    assert httpx.get(f"{url}/effects", trust_env=False).json() == {"count": 1, "duplicates": 0, "duplicate_keys": []}
    assert len(calls_path(log).read_text().splitlines()) == 20


def test_answers_a_later_repeat_from_the_record_at_once(start: Start, log: Path) -> None:
    url = start(service_s=2.0)
    complete(url, "k1")
    before = time.monotonic()
    assert complete(url, "k1").headers["Idempotent-Replayed"] == "true"
    assert time.monotonic() - before < 2.0
    assert len(read_effects(log)) == 1


def test_has_an_effect_for_every_call_without_a_key(start: Start, log: Path) -> None:
    url = start()
    for _ in range(3):
        complete(url)
    assert [(effect.key, effect.effect) for effect in read_effects(log)] == [(None, 1), (None, 2), (None, 3)]


def test_does_the_work_of_a_caller_that_hung_up(start: Start, log: Path) -> None:
    url = start(service_s=0.4)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{url}/v1/complete", headers={"Idempotency-Key": "lost"}, timeout=0.1, trust_env=False)
    assert complete(url, "lost").status_code == 200
    assert [effect.key for effect in read_effects(log)] == ["lost"]


def test_acts_on_every_call_of_a_class_whose_keys_it_forgets(start: Start, log: Path) -> None:
    url = start(0.0, 0.0, "--forgets", "send-mail", "--forgets", "lint-fix")
    for job_class in ("send-mail", "lint-fix", "test-patch"):
        for _ in range(2):
            assert complete(url, f"key-{job_class}", **{"class": job_class}).status_code == 200
    done = [effect.key for effect in read_effects(log)]
    assert done == ["key-send-mail", "key-send-mail", "key-lint-fix", "key-lint-fix", "key-test-patch"]
    assert known(url, "key-send-mail") == (200, {"done": True, "effects": 2})


def known(url: str, key: str) -> tuple[int, object]:
    answer = httpx.get(f"{url}/effects/{key}", trust_env=False)
    return answer.status_code, answer.json()


@pytest.mark.parametrize("job_class", ["keyed", "forgotten"])
def test_says_of_a_key_whether_its_work_was_done_and_nothing_while_it_is_under_way(
    start: Start, log: Path, job_class: str
) -> None:
    url = start(2.0, 0.0, "--forgets", "forgotten")
    call = {"headers": {"Idempotency-Key": "a/b:1"}, "json": {"class": job_class}, "timeout": 0.3, "trust_env": False}
    assert known(url, "a/b:1") == (200, {"done": False, "effects": 0})
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{url}/v1/complete", **call)  # type: ignore[arg-type]
    assert known(url, "a/b:1") == (409, {"error": "it is under way"})
    deadline = time.monotonic() + 10
    while known(url, "a/b:1")[0] == 409 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert known(url, "a/b:1") == (200, {"done": True, "effects": 1})
    assert [effect.key for effect in read_effects(log)] == ["a/b:1"]


def test_marks_canaries_by_body_and_by_key(start: Start, log: Path) -> None:
    url = start()
    complete(url, "a", canary=True)
    complete(url, "canary:run-1:lint-fix:1")
    complete(url, "b")
    assert [effect.canary for effect in read_effects(log)] == [True, True, False]


def test_takes_its_service_time_with_jitter(start: Start) -> None:
    url = start(service_s=0.2, jitter_s=0.1)
    times = [complete(url).elapsed.total_seconds() for _ in range(8)]
    assert min(times) >= 0.1
    assert statistics.median(times) < 0.4
    assert max(times) - min(times) > 0.01


def test_adds_next_to_nothing_to_its_service_time(start: Start) -> None:
    url = start()
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        times = [client.post("/v1/complete", json={}).elapsed.total_seconds() for _ in range(30)]
    # A socket with Nagle's delay would add 40 ms to nearly every answer; a busy machine slows some of them.
    assert statistics.quantiles(times, n=4)[0] < 0.03


def test_injects_its_share_of_errors_which_have_no_effect(start: Start, log: Path) -> None:
    url = start()
    fault = {"status": 429, "probability": 0.3, "retry_after_s": 30}
    assert httpx.put(f"{url}/faults", json=fault, trust_env=False).json() == fault
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        answers = {f"k{n}": complete_with(client, f"k{n}") for n in range(100)}
    refused = {key for key, answer in answers.items() if answer.status_code == 429}
    assert 12 <= len(refused) <= 50  # 30 ± 4 standard deviations
    assert {effect.key for effect in read_effects(log)} == set(answers) - refused
    assert all(answers[key].headers["Retry-After"] == "30" for key in refused)
    assert httpx.delete(f"{url}/faults", trust_env=False).status_code == 204
    assert complete(url, min(refused)).status_code == 200


@pytest.mark.parametrize("fault", [{"status": 200}, {"status": 503, "probability": 1.5}, {}])
def test_refuses_a_fault_that_is_none(start: Start, fault: dict[str, object]) -> None:
    url = start()
    assert httpx.put(f"{url}/faults", json=fault, trust_env=False).status_code == 422
    assert complete(url).status_code == 200


def test_keeps_a_readable_log_and_its_keys_across_kill_9(start: Start, log: Path, children: Children) -> None:
    url = start(service_s=0.1, jitter_s=0.1)
    answered: list[str] = []

    async def load() -> None:
        enough = asyncio.Event()
        async with httpx.AsyncClient(base_url=url, trust_env=False, limits=httpx.Limits(max_connections=40)) as client:

            async def one(number: int) -> None:
                answer = await client.post("/v1/complete", headers={"Idempotency-Key": f"k{number}"})
                assert answer.is_success
                answered.append(f"k{number}")
                if len(answered) == 50:
                    enough.set()

            calls = [asyncio.create_task(one(number)) for number in range(200)]
            await asyncio.wait_for(enough.wait(), 30)
            children.kill("provider")
            await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(load())
    lines = log.read_text().splitlines()
    effects = read_effects(log)
    assert 50 <= len(effects) < 200  # it died in the middle
    assert len(effects) == len(lines)
    assert set(answered) <= {effect.key for effect in effects}
    assert [effect.effect for effect in effects] == list(range(1, len(effects) + 1))

    children.restart("provider")
    assert complete(url, answered[0]).headers["Idempotent-Replayed"] == "true"
    assert len(read_effects(log)) == len(effects)
