"""The page against a real queue: what it shows, what it does, and that it does nothing twice or out of date."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from automation.page import foretell
from automation.page.deeds import Deed, Target
from automation.page.doing import Doing
from sluicegate.console import Person
from sluicegate.gate_events import Order
from sluicegate.producer import Producer
from sluicegate.submission import Submission
from tests.automation_parts import ON_BOTH, RUNBOOKS, Parts, quick
from tests.html_tree import Element, parsed
from tests.page_forms import done, opened, refused
from tests.webhooks import drained, served, still

pytestmark = ON_BOTH

Scenario = Callable[[Parts, httpx.AsyncClient], Awaitable[None]]


def play(url: str, folder: Path, scenario: Scenario) -> None:
    """Serve a queue on which nothing acts by itself, and play."""

    async def played() -> None:
        async with still(url, folder) as parts, served(parts) as client:
            await scenario(parts, client)

    asyncio.run(played())


async def front_with(client: httpx.AsyncClient, text: str) -> Element:
    """Open the page until it says this: what it shows may be one reading old."""
    end = time.monotonic() + 10
    while text not in (page := parsed((await client.get("/")).text)).text:
        assert time.monotonic() < end, page.text
        await asyncio.sleep(0.05)
    return page


def test_every_answer_carries_what_keeps_a_browser_from_mischief(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        run = parts.open_run()
        front = parsed((await client.get("/")).text)
        script = front.one("script").attributes["src"]
        pages = (
            "/",
            f"/runs/{run}",
            "/runs/none",
            "/do/hold",
            "/do/nothing",
            script,
            "/static/0/page.js",
            "/?outcome=x",
        )
        codes = []
        for address in pages:
            answer = await client.get(address)
            codes.append(answer.status_code)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "same-origin"
            assert answer.headers["cache-control"] == (
                "private, max-age=86400, immutable" if address == script else "no-store"
            )
        assert codes == [200, 200, 404, 200, 404, 200, 404, 200]

    play(redis_url, tmp_path, scenario)


def test_an_order_is_confirmed_carried_out_by_name_and_said(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        form = await opened(client, "/do/drain")
        assert "The gate of queue default is drain now, pinned (operator)." in form.page.text
        assert parts.state() == ("admit", None, None), "opening a confirmation does nothing"
        outcome = await done(client, "/do/drain", "the provider is down")
        assert outcome.attributes["data-done"] == "yes"
        assert outcome.one("p").text == "The gate of queue default is drain now, pinned (operator)."
        (entry, *_) = parts.store.gate_log(1)
        assert (entry.actor, entry.note, entry.to_state) == ("ann", "the provider is down", "drain")

        release = await opened(client, "/do/release")
        assert "pinned no more and stays drain" in release.page.text
        assert "the controller would then decide: admit (normal)" in release.page.text
        await done(client, "/do/release")
        assert parts.state() == ("drain", None, None)

    play(redis_url, tmp_path, scenario)


def test_a_run_is_started_held_resumed_and_aborted_and_its_page_tells_it(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        form = await opened(client, "/do/run?runbook=drain-and-recover")
        plan = [row.text for row in form.page.one("ol", class_="plan").children]
        assert [line.split(":")[0] for line in plan[:2]] == ["1 freeze", "2 snapshot"]
        await done(client, "/do/run?runbook=drain-and-recover", "mending it")
        (run,) = parts.store.runs()
        assert (run.actor, run.reason, run.trigger) == ("ann", "mending it", "person")
        assert "is live, so no other was opened" in await refused(client, "/do/run?runbook=drain-and-recover")

        await done(client, f"/do/hold-run?run={run.run_id}", "looking")
        assert parts.history(run.run_id).run.held
        await front_with(client, "unless somebody lets it go on")
        await done(client, f"/do/resume?run={run.run_id}", "looks good")
        assert not parts.history(run.run_id).run.held

        abort = await opened(client, f"/do/abort?run={run.run_id}")
        assert "fence is revoked" in abort.page.text
        outcome = await done(client, f"/do/abort?run={run.run_id}", "wrong alert")
        assert f"Run {run.run_id} is aborted" in outcome.text
        assert parts.state() == ("drain", "rolled_back", "manual_operator_hold")
        assert "rolls back already" in await refused(client, f"/do/abort?run={run.run_id}")
        page = parsed((await client.get(f"/runs/{run.run_id}")).text)
        assert "looks good" in page.text

    play(redis_url, tmp_path, scenario)


def test_what_is_no_longer_so_is_not_done_and_what_closes_always_is(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        parts.store.order("drain", "bob", "first")
        release, hold = await opened(client, "/do/release"), await opened(client, "/do/hold")
        parts.store.order("reject", "bob", "since then")
        answer = await release.send()
        assert answer.status_code == 409
        assert "This has changed since" in answer.text
        assert parts.state() == ("reject_new", "operator", None)
        assert (await hold.send()).status_code == 303
        assert parts.store.gate_log(1)[0].actor == "ann"
        # What the page then shows can be sent.
        again = parsed(answer.text)
        assert again.one("input", name="seen").attributes["value"] != release.fields["seen"]

    play(redis_url, tmp_path, scenario)


def test_a_duplicate_that_nobody_saw_on_the_page_is_not_acknowledged_by_it(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        parts.store.confirm_duplicate("key-1", actor="ledger", note="two effects")
        form = await opened(client, "/do/acknowledge")
        assert "1 confirmed duplicates are acknowledged." in form.page.text
        parts.store.confirm_duplicate("key-2", actor="ledger", note="two effects")
        assert (await form.send()).status_code == 409
        assert parts.look().gate.duplicates_unacknowledged == 2
        await done(client, "/do/acknowledge", "keys audited")
        assert parts.look().gate.duplicates_unacknowledged == 0

    play(redis_url, tmp_path, scenario)


def test_what_changes_between_the_last_look_and_the_deed_is_seen_too(redis_url: str, tmp_path: Path) -> None:
    """The page compares, and then the order itself does: what came in between is nobody's to release."""
    ann = Person("ann", "looked at it")
    with closing(still(redis_url, tmp_path)) as parts:
        doing = Doing(parts.store, RUNBOOKS, parts.settings.reconcile)
        parts.store.order("drain", "bob", "first")
        seen = f"{parts.look().gate.seen}/operator"
        parts.store.order("drain", "bob", "for another reason")
        said = asyncio.run(doing.do(Deed.RELEASE, Target(), ann, seen))
        assert (said.done, parts.state()[1]) == (False, "operator")
        assert "has changed since you looked" in said.sentence
        assert asyncio.run(doing.do(Deed.HOLD, Target(), ann, seen)).done, "what closes is done all the same"
        now = f"{parts.look().gate.seen}/operator"
        assert asyncio.run(doing.do(Deed.RELEASE, Target(), ann, now)).done

        parts.store.confirm_duplicate("key-1", actor="ledger", note="two effects")
        seen = f"{parts.look().gate.seen}/"
        parts.store.confirm_duplicate("key-2", actor="ledger", note="two effects")
        assert not asyncio.run(doing.do(Deed.ACKNOWLEDGE, Target(), ann, seen)).done
        assert parts.look().gate.duplicates_unacknowledged == 2


def test_a_form_that_is_sent_twice_does_its_deed_once(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        form = await opened(client, "/do/drain")
        moves = len(parts.store.gate_log())
        answers = await asyncio.gather(*(form.send() for _ in range(4)))
        assert {answer.status_code for answer in answers} == {303}
        assert len(parts.store.gate_log()) == moves + 1
        again = await form.send()
        assert again.headers["location"] in {answer.headers["location"] for answer in answers}
        assert len(parts.store.gate_log()) == moves + 1

    play(redis_url, tmp_path, scenario)


@pytest.mark.parametrize(
    ("reason", "actor"),
    [("", "ann"), ("why", ""), ("why", "a\r\nb"), ("a\nb", "ann"), ("x" * 501, "ann"), ("why", "n" * 65)],
)
def test_without_a_name_and_a_reason_in_one_line_nothing_is_done(
    redis_url: str, tmp_path: Path, reason: str, actor: str
) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        answer = await (await opened(client, "/do/drain")).send(reason, actor)
        assert answer.status_code == 422
        assert parsed(answer.text).one(role="alert").text.startswith("A name of at most 64")
        assert parts.state() == ("admit", None, None)

    play(redis_url, tmp_path, scenario)


def state_of(parts: Parts, job_id: str) -> str:
    record = parts.store.job(job_id)
    return str(record["job"]["state"]) if record is not None else "gone"


def lost(parts: Parts, count: int, job_class: str = "lint-fix") -> list[str]:
    """Let jobs become unknown: their worker vanished after its intent."""
    names = [f"lost-{job_class}-{number}" for number in range(count)]
    Producer(parts.store).submit_many([Submission(name, job_class, "{}") for name in names])
    for job in parts.store.claim("gone", f"claim-{job_class}", count).jobs:
        parts.store.intent("gone", job.job_id, job.fence)
        base = {"worker": "gone", "id": job.job_id, "fence": str(job.fence), "request": job.job_id}
        parts.store.settle(base | {"outcome": "unknown", "call": {"kind": "dropped", "latency_ms": 1}})
    return names


def test_unknown_jobs_are_asked_about_retried_failed_and_confirmed_by_name(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        asked, retried, failed, succeeded = lost(parts, 4)
        (unsafe,) = lost(parts, 1, "test-patch")
        front = await front_with(client, "5 jobs are unknown")
        assert len(front.one("section", class_="jobs").all("article")) == 5

        form = await opened(client, f"/do/reconcile?job={asked}")
        assert "a repeat is safe" in form.page.text
        assert "Job lost-lint-fix-0 is ready now." in (await done(client, f"/do/reconcile?job={asked}")).text
        await done(client, f"/do/retry?job={retried}")
        await done(client, f"/do/fail?job={failed}", "the provider says so")
        await done(client, f"/do/succeed?job={succeeded}")
        states = [state_of(parts, name) for name in (asked, retried, failed, succeeded)]
        assert states == ["ready", "ready", "failed", "succeeded"]
        record = next(one for one in parts.store.reconcile_log(kind="reconcile") if one["job"] == failed)
        assert (record["actor"], record["note"]) == ("ann", "the provider says so")

        assert "its effect happens twice" in (await opened(client, f"/do/retry?job={unsafe}")).page.text
        outcome = await done(client, f"/do/reconcile?job={unsafe}")
        assert outcome.attributes["data-done"] == "no"
        assert "Nobody can tell" in outcome.text
        assert state_of(parts, unsafe) == "unknown"

    play(redis_url, tmp_path, scenario)


def test_a_job_that_left_meanwhile_is_left_alone(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        (name,) = lost(parts, 1)
        form = await opened(client, f"/do/fail?job={name}")
        parts.store.reconcile(name, "retry", actor="bob", reason="first", source="person")
        answer = await form.send()
        assert answer.status_code == 409
        assert f"Job {name} is ready" in answer.text
        assert state_of(parts, name) == "ready"
        assert "has no job none" in await refused(client, "/do/fail?job=none")

    play(redis_url, tmp_path, scenario)


def test_a_step_is_approved_only_while_the_run_waits_there(redis_url: str, tmp_path: Path) -> None:
    async def scenario(parts: Parts, client: httpx.AsyncClient) -> None:
        run = parts.open_run()
        assert "does not wait for a person at step fix" in await refused(client, f"/do/approve?run={run}&step=fix")
        assert "No such run" in (await client.get("/runs/none")).text
        assert "There is no such runbook" in await refused(client, "/do/run?runbook=none")
        assert "is not live" in await refused(client, "/do/abort?run=none")
        assert "no live recovery" in await refused(client, "/do/resume?run=none")
        assert "is not held" in await refused(client, f"/do/resume?run={run}")

    play(redis_url, tmp_path, scenario)


def gate_states(parts: Parts) -> dict[str, Callable[[], object]]:
    """Name ways to bring a fresh gate into a state."""
    return {
        "admit": lambda: None,
        "drained": lambda: drained(parts),
        "pinned": lambda: parts.store.order("drain", "bob", "first"),
        "rejecting": lambda: parts.store.order("reject", "bob", "first", pin=False),
        "running": parts.open_run,
        "duplicates": lambda: parts.store.confirm_duplicate("key", actor="ledger", note="two effects"),
    }


@pytest.mark.parametrize("state", ["admit", "drained", "pinned", "rejecting", "running", "duplicates"])
@pytest.mark.parametrize("order", [deed.order for deed in Deed if deed.order is not None] + [Order.ABORT])
def test_what_is_foretold_of_an_order_is_what_happens(redis_url: str, tmp_path: Path, state: str, order: Order) -> None:
    parts = still(redis_url, tmp_path)
    try:
        gate_states(parts)[state]()
        before = parts.look()
        foretold = foretell.ordered(order, before)
        answer = parts.store.order(order, "ann", "a test")
        after = parts.look().gate
        assert (foretold.answer.answer, foretold.answer.drain_state, foretold.answer.pin) == (
            answer.answer,
            after.drain_state,
            after.pin,
        )
        assert (foretold.answer.acknowledged > 0) == (answer.acknowledged > 0)
    finally:
        parts.store.close()
        parts.client.close()


def test_a_queue_that_can_t_be_read_is_said_and_nothing_can_be_done(server: object, tmp_path: Path) -> None:
    async def scenario() -> None:
        parts = Parts("redis://127.0.0.1:1/0", quick(tmp_path), controller=False, executor=False, initialised=False)
        async with served(parts) as client:
            front = await client.get("/")
            assert front.status_code == 503
            assert parsed(front.text).one("section", id="unread").attributes.get("hidden") is None
            for address in ("/do/hold", "/runs/run-1"):
                answer = await client.get(address)
                assert answer.status_code == 503
                assert "not answer" in parsed(answer.text).one("main").text
        parts.close()

    asyncio.run(scenario())
