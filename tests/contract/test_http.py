"""The HTTP API over real connections and real servers: every code, and what it promises (contract §5)."""

from __future__ import annotations

import json
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import redis

from sluicegate.http_api import BODY_LIMIT, Waits
from sluicegate.job import CallKind, Outcome
from sluicegate.store import Store
from tests.http_serving import ServedQueue, job_body
from tests.lossy import LossyRelay, connected
from tests.queues import OpenQueue, OpenQueueFunction, wait_until
from tests.recovery import Recovery
from tests.watched import watched

TOKEN = "a-token-of-this-test"
DECISION = {"accepted", "job_id", "reason", "retry_after_s", "replayed"}


def problem(answer: httpx.Response, status: int, reason: str) -> dict[str, Any]:
    """Check the shape of a problem, and give it."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    body: dict[str, Any] = answer.json()
    assert (body["status"], body["reason"]) == (status, reason)
    assert body["title"]
    assert body["detail"]
    anchor = "class_limit" if reason.endswith("_limit") else reason
    assert body["type"].endswith(f"/docs/reference/http.md#{anchor}")
    return body


def refusal(answer: httpx.Response, status: int, reason: str, retry_after: str | None) -> dict[str, Any]:
    """Check a refused job's problem, and give it."""
    body = problem(answer, status, reason)
    assert set(body) >= DECISION
    assert body["accepted"] is False
    assert answer.headers.get("retry-after") == retry_after
    return body


# --- decisions -----------------------------------------------------------------------------------------------------


def test_an_accepted_job_is_202_and_its_location_shows_it(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        answer = served.post(deadline_s=9)
        assert answer.status_code == 202
        body = answer.json()
        job_id = body["job_id"]
        assert body == {
            "accepted": True,
            "job_id": job_id,
            "reason": "",
            "retry_after_s": None,
            "replayed": False,
        }
        assert answer.headers["location"] == f"/v1/jobs/{job_id}"
        shown = served.client.get(answer.headers["location"])
    assert shown.status_code == 200
    record = queue.record(job_id)
    job = shown.json()
    assert (job["job_id"], job["state"], job["class"], job["attempt"]) == (job_id, "ready", "lint-fix", 0)
    assert job["deadline_ts"] == int(record["deadline"]) / 1000
    assert 8.5 < job["deadline_ts"] - job["admitted_ts"] <= 9.0
    assert (job["started_ts"], job["ended_ts"], job["cost_class"]) == (None, None, None)
    assert job["decision"] == {"accepted": True, "reason": "", "decided_ts": job["admitted_ts"]}


def test_a_jobs_record_tells_how_far_it_is(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        path = served.post(job_class="browse").headers["location"]
        job = queue.claimed()
        running = served.client.get(path).json()
        queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK)
        ended = served.client.get(path).json()
    assert (running["state"], running["attempt"], running["cost_class"]) == ("running", 1, "browser")
    assert running["started_ts"] >= running["admitted_ts"]
    assert ended["state"] == "succeeded"
    assert ended["ended_ts"] >= running["started_ts"]


def test_the_same_key_again_is_the_same_answer_marked_as_replayed(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        first, again = served.post(), served.post()
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == {**first.json(), "replayed": True}
    assert again.headers["location"] == first.headers["location"]
    assert queue.counters()["admitted"] == 1


def test_a_bare_key_is_the_same_key_as_the_quoted_one(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        first = served.post("k-1")
        bare = served.client.post("/v1/jobs", json=job_body(), headers={"idempotency-key": "k-1"})
    assert bare.json() == {**first.json(), "replayed": True}
    assert queue.record(first.json()["job_id"])["key"] == "k-1"


def test_a_repeat_may_be_spaced_ordered_and_escaped_differently(queue: OpenQueue) -> None:
    head = {"Idempotency-Key": "k1", "Content-Type": "application/json; charset=utf-8"}
    bodies = (
        '{"class":"lint-fix","payload":{"b":[1.5,"é"],"a":null}}',
        '{ "payload" : {"a":null, "b":[1.50, "\\u00e9"]}, "class":"lint-fix" }',
    )
    with ServedQueue(queue.store) as served:
        first, again = (served.client.post("/v1/jobs", content=body.encode(), headers=head) for body in bodies)
        other = served.post(payload={"a": None, "b": [1.5, "e"]})
    assert (first.status_code, again.json()["replayed"]) == (202, True)
    problem(other, 422, "conflict")
    assert queue.client.get(f"payload:{first.json()['job_id']}") == '{"a":null,"b":[1.5,"é"]}'


def test_any_json_is_a_payload(queue: OpenQueue) -> None:
    payloads: tuple[object, ...] = (None, "text", 7, 12345678901234567890123, 1.5, True, [], {"a": {"b": [1]}})
    with ServedQueue(queue.store) as served:
        for n, payload in enumerate(payloads):
            answer = served.post(f"k{n}", payload=payload)
            assert answer.status_code == 202, payload
            assert json.loads(queue.client.get(f"payload:{answer.json()['job_id']}")) == payload


def test_a_deadline_may_be_an_instant(queue: OpenQueue) -> None:
    at_s = queue.store.observe().at_ms / 1000 + 9
    with ServedQueue(queue.store) as served:
        job_id = served.post(deadline_ts=at_s).json()["job_id"]
    assert int(queue.record(job_id)["deadline"]) == round(at_s * 1000)


def test_final_refusals_and_conflicts_are_422_without_retry_after(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        first = served.post()
        conflict = refusal(served.post(payload="other"), 422, "conflict", None)
        unknown = refusal(served.post("k2", job_class="no-such"), 422, "unknown_class", None)
        again = refusal(served.post("k2", job_class="no-such"), 422, "unknown_class", None)
        refusal(served.post("k3", cost_class="no-such"), 422, "unknown_class", None)
        refusal(served.post("k4", deadline_s=0.1), 422, "deadline_unreachable", None)
    assert conflict["job_id"] == first.json()["job_id"]
    assert (unknown["replayed"], again["replayed"]) == (False, True)
    assert again["job_id"] == unknown["job_id"]


def test_a_full_class_or_cost_class_is_429(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(
        classes={"lint-fix": {"deadline_s": 12, "max_pending": 1}}, cost_classes={"browser": {"max_pending": 1}}
    )
    with ServedQueue(queue.store) as served:
        assert [served.post("k1").status_code, served.post("k2", job_class="browse").status_code] == [202, 202]
        first = refusal(served.post("k3"), 429, "lint-fix_limit", "3")  # 15 s ÷ 5
        refusal(served.post("k4", job_class="browse"), 429, "browser_limit", "3")
        time.sleep(0.01)
        again = refusal(served.post("k3"), 429, "lint-fix_limit", "3")
    assert again["retry_after_s"] < first["retry_after_s"] == 3.0, "rounded up: nobody comes too early"
    assert again["replayed"] is True


def test_a_full_queue_is_503(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_pending=1)
    with ServedQueue(queue.store) as served:
        assert served.post("k1").status_code == 202
        refusal(served.post("k2"), 503, "overloaded", "6")


def test_a_closed_gate_is_503_until_the_refusal_is_due_and_the_job_keeps_its_id(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"closed_retry_s": 0.3})
    queue.store.order("reject", "ada", "test")
    with ServedQueue(queue.store) as served:
        refused = refusal(served.post(), 503, "admission_closed", "1")
        assert refused["retry_after_s"] == 0.3
        problem(served.client.get(f"/v1/jobs/{refused['job_id']}"), 404, "no_such_job")
        queue.store.order("open", "ada", "test")
        wait_until(lambda: served.post().status_code == 202, "the job's acceptance")
        assert served.post().json()["job_id"] == refused["job_id"]


def test_a_silent_controller_is_503(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"controller_silent_s": 0.05, "tick_s": 0.05})
    with ServedQueue(queue.store) as served:
        wait_until(lambda: served.post(str(time.monotonic_ns())).status_code == 503, "the silence")
        refusal(served.post("k1"), 503, "controller_silent", "6")


def test_a_ramp_admits_its_share_of_the_keys(queue: OpenQueue) -> None:
    run = Recovery(queue)
    assert run.step("recover") == "moved"
    run.green()
    assert run.step("reopen") == "moved"
    with ServedQueue(queue.store) as served:
        answers = [served.post(f"k{n}") for n in range(40)]
    outside = [answer for answer in answers if answer.status_code != 202]
    assert 0 < len(outside) < 40
    for answer in outside:
        refusal(answer, 503, "ramp", "6")


def test_a_queue_that_was_never_opened_is_closed_and_nothing_is_written(redis_url: str) -> None:
    store = Store.connect(redis_url)
    with ServedQueue(store) as served:
        refusal(served.post(), 503, "admission_closed", "30")
        assert served.client.get("/readyz").status_code == 200
    store.close()
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0


# --- many at once --------------------------------------------------------------------------------------------------


def test_a_hundred_clients_at_once_share_a_few_calls(queue: OpenQueue) -> None:
    with watched(queue.url) as store, ServedQueue(store) as served:
        store.go.clear()
        with ThreadPoolExecutor(100) as pool:
            asked = [pool.submit(served.post, f"k{n}") for n in range(100)]
            # Two calls have begun with whoever came first; everybody else waits.
            wait_until(lambda: sum(map(len, store.batches)) + served.producer.waiting == 100, "the hundred requests")
            store.go.set()
            answers = [one.result() for one in asked]
        assert len(store.batches) <= 6
        assert store.most_at_once == 2
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["job_id"] for answer in answers}) == 100
    assert queue.counters()["admitted"] == 100


def test_many_callers_racing_with_one_key_over_two_services_get_one_job(queue: OpenQueue) -> None:
    other = Store.connect(queue.url)
    with ServedQueue(queue.store) as one, ServedQueue(other) as two, ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: (one, two)[n % 2].post(), range(40)))
    other.close()
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert Counter(answer.json()["replayed"] for answer in answers) == {False: 1, True: 39}
    assert queue.counters()["admitted"] == 1


def test_callers_racing_with_one_key_and_two_payloads_get_one_job_and_conflicts(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served, ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda n: served.post(payload=n % 2), range(20)))
    assert Counter(answer.status_code for answer in answers) == {202: 10, 422: 10}
    assert len({answer.json()["job_id"] for answer in answers}) == 1


def test_more_waiting_requests_than_it_holds_are_unanswered_at_once(queue: OpenQueue) -> None:
    with watched(queue.url) as store, ServedQueue(store, max_waiting=1) as served:
        store.go.clear()
        with ThreadPoolExecutor(3) as pool:
            asked = []
            for n in range(3):
                asked.append(pool.submit(served.post, f"k{n}"))
                wait_until(
                    lambda n=n: sum(map(len, store.batches)) + served.producer.waiting == n + 1,  # type: ignore[misc]
                    "the request",
                )
            refused = served.post("k3")
            store.go.set()
            assert {one.result().status_code for one in asked} == {202}
        problem(refused, 503, "unanswered")
        assert served.post("k3").json()["replayed"] is False


# --- the queue's server is away ------------------------------------------------------------------------------------


def test_a_lost_answer_is_503_unanswered_and_the_repeat_counts_once(queue: OpenQueue) -> None:
    with LossyRelay(queue.url) as relay:
        store = connected(relay)
        with ServedQueue(store) as served:
            relay.lose_next()
            lost = served.post()
            again = served.post()
        store.close()
    body = problem(lost, 503, "unanswered")
    assert lost.headers["retry-after"] == "1"
    assert "job_id" not in body
    assert "accepted" not in body
    assert "same Idempotency-Key" in body["detail"]
    assert (again.status_code, again.json()["replayed"]) == (202, True)
    assert queue.counters()["admitted"] == 1


def test_without_a_server_everything_is_503_and_afterwards_it_goes_on(queue: OpenQueue) -> None:
    with LossyRelay(queue.url) as relay:
        store = connected(relay)
        with ServedQueue(store) as served:
            path = served.post().headers["location"]
            relay.refuse()
            for answer in (served.post("k2"), served.client.get(path), served.client.get("/readyz")):
                problem(answer, 503, "unanswered")
                assert answer.headers["retry-after"] == "1"
            assert served.client.get("/healthz").json() == {"status": "ok"}
            relay.accept()
            assert served.post("k2").status_code == 202
            assert served.client.get(path).status_code == 200
            assert served.client.get("/readyz").json() == {"status": "ready"}
        store.close()


def test_a_server_that_hangs_is_not_waited_for_past_the_bound(queue: OpenQueue) -> None:
    with ServedQueue(queue.store, waits=Waits(answer_s=0.2)) as served:
        queue.client.client_pause(900)
        began = time.monotonic()
        problem(served.post(), 503, "unanswered")
        problem(served.client.get("/v1/jobs/j1"), 503, "unanswered")
        assert time.monotonic() - began < 0.9
        wait_until(lambda: served.post().status_code == 202, "the pause's end")
    assert queue.counters()["admitted"] == 1


def test_a_server_that_refuses_to_write_is_503_and_nothing_is_submitted(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        queue.client.config_set("maxmemory", 1)
        try:
            answer = served.post()
        finally:
            queue.client.config_set("maxmemory", 0)
        body = problem(answer, 503, "store_rejected")
        assert answer.headers["retry-after"] == "30"
        assert "maxmemory" not in body["detail"], "the server's own words stay in the log"
        assert served.post().json()["replayed"] is False


# --- requests that can't be understood -----------------------------------------------------------------------------


def test_without_a_key_it_is_400_and_nothing_is_submitted(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        body = problem(served.post(None), 400, "idempotency_key_missing")
    assert "Idempotency-Key" in body["detail"]
    assert "admitted" not in queue.counters()


# Header lines that don't hold one key.
BAD_KEYS: tuple[tuple[str, ...], ...] = (
    ('""',),
    ('"open',),
    ('"a b"',),
    ("a b",),
    ("a,b",),
    ("a;b",),
    ("one", "two"),
    ('"one"', '"two"'),
    ("é",),
    ("x" * 201,),
    ("",),
)


def test_a_header_that_does_not_hold_one_key_is_400(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        for lines in BAD_KEYS:
            headers = [(b"Idempotency-Key", line.encode("latin-1")) for line in lines]
            answer = served.client.post("/v1/jobs", json=job_body(), headers=headers)
            problem(answer, 400, "idempotency_key_malformed")
    assert "admitted" not in queue.counters()


# Bodies that are no job, with the status and the reason.
BAD_BODIES: tuple[tuple[bytes, int, str], ...] = (
    (b"", 400, "body_not_json"),
    (b"{", 400, "body_not_json"),
    (b"\xff\xfe", 400, "body_not_json"),
    (b'{"class":"lint-fix","payload":"\\ud800"}', 400, "body_not_json"),
    (b"[" * 100_000, 400, "body_not_json"),
    (b"[]", 422, "malformed"),
    (b'{"payload":1}', 422, "malformed"),
    (b'{"class":"lint-fix"}', 422, "malformed"),
    (b'{"class":7,"payload":1}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":1,"deadline":3}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":1,"deadline_s":"3"}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":1,"deadline_s":true}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":1,"deadline_s":0}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":1,"deadline_s":-1}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":1,"deadline_s":1,"deadline_ts":2}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":1,"deadline_s":1e400}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":[1e400]}', 422, "malformed"),
    (b'{"class":"a b","payload":1}', 422, "malformed"),
    (b'{"class":"","payload":1}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":1,"cost_class":""}', 422, "malformed"),
    (b'{"class":"' + b"x" * 65 + b'","payload":1}', 422, "malformed"),
    (b'{"class":"lint-fix","payload":"' + b"x" * 262_143 + b'"}', 422, "malformed"),
)


def test_a_body_that_is_no_job_is_named_and_nothing_is_kept_for_its_key(queue: OpenQueue) -> None:
    headers = {"Idempotency-Key": "k1", "Content-Type": "application/json"}
    with ServedQueue(queue.store) as served:
        for body, status, reason in BAD_BODIES:
            answer = served.client.post("/v1/jobs", content=body, headers=headers)
            assert len(problem(answer, status, reason)["detail"]) < 500
        assert served.post("k1").json()["replayed"] is False


def test_a_key_kept_for_canaries_is_refused(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        assert "canaries" in problem(served.post("canary:x"), 422, "malformed")["detail"]


def test_what_is_not_declared_as_json_is_415(queue: OpenQueue) -> None:
    body = json.dumps(job_body())
    with ServedQueue(queue.store) as served:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"):
            headers = {"Idempotency-Key": "k1", "Content-Type": kind}
            problem(served.client.post("/v1/jobs", content=body, headers=headers), 415, "not_json_type")
        headers["Content-Type"] = "application/vnd.example+json"
        assert served.client.post("/v1/jobs", content=body, headers=headers).status_code == 202


def test_a_body_past_its_limit_is_413_whether_announced_or_not(queue: OpenQueue) -> None:
    headers = {"Idempotency-Key": "k1", "Content-Type": "application/json"}
    large = b" " * (BODY_LIMIT + 1)
    with ServedQueue(queue.store) as served:
        problem(served.client.post("/v1/jobs", content=large, headers=headers), 413, "body_too_large")
        chunked = served.client.post("/v1/jobs", content=iter([large[:70_000]] * 16), headers=headers)
        problem(chunked, 413, "body_too_large")
        most = json.dumps(job_body()).encode().ljust(BODY_LIMIT)
        assert served.client.post("/v1/jobs", content=most, headers=headers).status_code == 202


def test_a_body_that_does_not_come_is_408(queue: OpenQueue) -> None:
    with (
        ServedQueue(queue.store, waits=Waits(body_s=0.1)) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=10) as slow,
    ):
        slow.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
        )
        said = b""
        while part := slow.recv(65_536):
            said += part
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b'"reason":"body_too_slow"' in said


def test_a_client_that_goes_away_in_mid_body_leaves_the_service_well(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as gone:
            gone.sendall(
                b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k1\r\n"
                b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
            )
        assert served.post("k2").status_code == 202
    assert queue.counters()["admitted"] == 1


def test_markup_and_line_breaks_in_fields_stay_data(queue: OpenQueue) -> None:
    evil = "<script>alert(1)</script>\r\nX-Evil: yes\r\n\r\n"
    with ServedQueue(queue.store) as served:
        kept = served.post("k1", payload={evil: evil})
        odd_class = served.post("k2", job_class=evil)
        odd_field = served.post("k3", **{evil: 1})
        markup = served.post("k4", job_class="<b>")
        escaped = served.client.get("/v1/jobs/%3Cb%3E%20%0dX-Evil:%20yes")
    assert json.loads(queue.client.get(f"payload:{kept.json()['job_id']}")) == {evil: evil}
    problem(odd_class, 422, "malformed")
    problem(odd_field, 422, "malformed")
    refusal(markup, 422, "unknown_class", None)
    problem(escaped, 404, "no_such_job")
    for answer in (kept, odd_class, odd_field, markup, escaped):
        assert "x-evil" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-type"] in ("application/json", "application/problem+json")


# --- looking, and who may ------------------------------------------------------------------------------------------


def test_an_id_of_any_printable_characters_is_found_under_its_location(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        for job_id in ("a/b", "a?b#c", "%41", "<i>", "..a", "j1/"):
            queue.accepted(job_id=job_id)
            answer = served.post(job_id, payload={})
            path = answer.headers["location"]
            assert path.count("/") == 3
            assert (answer.json()["job_id"], answer.json()["replayed"]) == (job_id, True)
            assert served.client.get(path).json()["job_id"] == job_id


def test_a_job_that_is_not_there_is_404(queue: OpenQueue) -> None:
    queue.accepted(job_id="j1")
    with ServedQueue(queue.store) as served:
        for path in ("no-such", "", "x" * 201, "j1:payload", "a%20b", "%C3%A9"):
            problem(served.client.get(f"/v1/jobs/{path}"), 404, "no_such_job")


def test_a_token_guards_the_jobs_and_nothing_else(queue: OpenQueue) -> None:
    with ServedQueue(queue.store, token=TOKEN) as served:
        wrong = ("", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer é")
        for given in wrong:
            headers = [(b"Authorization", given.encode("latin-1")), (b"Idempotency-Key", b"k1")]
            submitted = served.client.post("/v1/jobs", json=job_body(), headers=headers)
            for answer in (submitted, served.client.get("/v1/jobs/j1", headers=headers)):
                problem(answer, 401, "unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"
                assert TOKEN not in answer.text
        for path in ("/healthz", "/readyz", "/openapi.json"):
            assert served.client.get(path).status_code == 200
        for right in (f"Bearer {TOKEN}", f"bearer  {TOKEN}"):
            served.client.headers["Authorization"] = right
            assert served.post().status_code == 202
    assert queue.counters()["admitted"] == 1


def test_a_token_is_asked_for_before_the_body_is_read(queue: OpenQueue) -> None:
    with (
        ServedQueue(queue.store, token=TOKEN) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=10) as caller,
    ):
        caller.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        assert caller.recv(65_536).startswith(b"HTTP/1.1 401 ")


def test_other_paths_and_methods_are_problems_too(queue: OpenQueue) -> None:
    with ServedQueue(queue.store) as served:
        problem(served.client.get("/v1/job"), 404, "no_such_path")
        answer = served.client.delete("/v1/jobs")
        problem(answer, 405, "no_such_method")
        assert answer.headers["allow"] == "POST"


def test_a_record_that_makes_no_sense_is_500_and_the_service_goes_on(queue: OpenQueue) -> None:
    job_id = queue.accepted(job_id="j1")
    deadline = queue.record(job_id)["deadline"]
    queue.client.hset("job:j1", "deadline", "soon")
    with ServedQueue(queue.store) as served:
        problem(served.client.get("/v1/jobs/j1"), 500, "internal_error")
        queue.client.hset("job:j1", "deadline", deadline)
        assert served.client.get("/v1/jobs/j1").status_code == 200


def test_the_description_served_is_the_one_committed(queue: OpenQueue, repository: Path) -> None:
    committed = (repository / "docs/reference/openapi.json").read_text(encoding="utf-8")
    with ServedQueue(queue.store) as served:
        assert served.client.get("/openapi.json").json() == json.loads(committed)
