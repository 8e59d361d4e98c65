"""A whole recovery with real parts, driven from the page in a real browser; each state is looked at, by axe too.

`PAGE_PICTURES=docs/images` in the environment keeps a picture of each state there, for the guide.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, ViewportSize, expect

from sluicegate.producer import Producer
from sluicegate.submission import Submission
from tests.automation_parts import ON_BOTH, Parts, quick
from tests.browsing import browser, grave_faults
from tests.webhooks import served

DESK = ViewportSize(width=1200, height=760)
PHONE = ViewportSize(width=390, height=844)
# A drill that waits for people and for a busy machine, with room to look at each state.
TIMINGS = {"fix_timeout_s": 90, "fix_page_s": 1, "canary_timeout_s": 20, "burn_down_max_s": 20, "gate_timeout_s": 10}
THRESHOLDS = {"drain_age_p95_seconds": 4.5}
WAIT_MS = 30_000


class Person:
    """Look at the page and act on it, as the person on call does."""

    def __init__(self, page: Page, parts: Parts) -> None:
        self.page = page
        self.parts = parts

    async def sees(self, state: str) -> None:
        await expect(self.page.locator(".state")).to_have_text(state, timeout=WAIT_MS)

    async def sees_asked(self, text: str) -> None:
        await expect(self.page.locator(".asked")).to_contain_text(text, timeout=WAIT_MS)

    async def opens(self, button: str) -> None:
        await self.page.get_by_role("link", name=button).first.click()
        await self.page.locator("#reason").wait_for()

    async def confirms(self, reason: str, said: str) -> None:
        await self.page.locator("#actor").fill("ann")
        await self.page.locator("#reason").fill(reason)
        await self.page.locator("form button").click()
        await expect(self.page.locator(".outcome")).to_contain_text(said)
        await expect(self.page.locator("#live")).to_have_attribute("data-state", "live")

    async def does(self, button: str, reason: str, said: str) -> None:
        await self.opens(button)
        await self.confirms(reason, said)

    async def keeps(self, what: Page | Locator, name: str) -> None:
        """Keep a picture of it where one is wanted."""
        folder = os.environ.get("PAGE_PICTURES")
        if folder:
            await what.screenshot(path=f"{folder}/page-{name}.png")

    async def pictures(self, name: str) -> None:
        """Keep a picture, and look for what keeps people from using the page."""
        await self.keeps(self.page, name)
        assert await grave_faults(self.page) == [], name


async def incident(person: Person) -> None:
    """Let the provider hang until the gate has closed in two steps and a run waits for a word."""
    parts = person.parts
    await person.sees("admit")
    await person.sees_asked("Nothing is asked of you.")
    assert parts.submit(6) == [""] * 6
    await expect(person.page.locator("[aria-label=queue_age_p95_seconds] polyline")).to_have_count(1)
    await person.pictures("admit")
    parts.provider.answers.clear()
    # A call whose end nobody sees, of a class that is not safe to repeat.
    (decision,) = Producer(parts.store).submit_many([Submission("mail-4711", "test-patch", "{}")])
    assert decision.accepted, (decision, parts.look().gate)
    await parts.until(lambda: parts.look().running, "a running job")
    many = [Submission(f"job-{number}", "test-patch", "{}") for number in range(8)]
    assert all(one.accepted for one in Producer(parts.store).submit_many(many))
    await person.sees("reject_new")
    await person.sees("drain")
    await person.sees_asked("At step fix the run waits for you: approve it once the fault is gone.")
    await person.sees_asked("unknown: nobody saw the end")
    await expect(person.page.locator("#live")).to_have_attribute("data-state", "live")
    await person.pictures("waits")
    await person.keeps(person.page.locator('[data-part="figures"]'), "figures")


async def recovery(person: Person) -> None:
    """Mend the path, say so, and watch it prove itself."""
    parts = person.parts
    await person.opens("Approve step fix")
    await expect(person.page.locator(".plan")).to_contain_text("canary")
    await person.pictures("confirm")
    parts.provider.answers.set()
    parts.provider.latency_s = 0.15
    await person.confirms("switched over to the other region", "is approved")
    await person.sees("recovering")
    await expect(person.page.locator(".verdicts, .run")).to_contain_text(["canary"])
    await person.pictures("recovering")
    await person.sees("admit")
    await expect(person.page.locator(".past")).to_contain_text("succeeded", timeout=WAIT_MS)
    (run,) = parts.store.runs()
    assert parts.history(run.run_id).approvals["4 fix"] == "ann: switched over to the other region"


async def holds(person: Person) -> None:
    """Hold the gate and let it go; start a run, hold it, let it go on, and abort it with a reason."""
    await person.does("Hold the gate", "nothing moves while I look", "pinned (operator)")
    await person.sees_asked("The gate is pinned (operator)")
    await person.does("Release the pin", "looked at", "pinned no more")
    await expect(person.page.locator(".asked")).not_to_contain_text("pinned")
    await person.does("Drain now", "the provider fails again", "is drain now")
    await person.does("Start the recovery", "mending it", "is open")
    await person.sees_asked("At step fix")
    await person.does("Abort the run", "wrong region", "is aborted")
    await person.sees_asked("The gate is pinned (rolled_back)")
    await expect(person.page.locator("[aria-label=rollback_reason] .value")).to_have_text("manual_operator_hold")
    await person.pictures("rolled-back")
    moves = {(move.actor, move.note) for move in person.parts.store.gate_log(50)}
    assert {("ann", "nothing moves while I look"), ("ann", "looked at"), ("ann", "wrong region")} <= moves


async def reconciles(person: Person) -> None:
    """Ask what became of the unknown job; as nobody can tell, look at the provider and say it."""
    job = person.page.locator("article[data-state=unknown]").first
    await job.scroll_into_view_if_needed()
    await person.pictures("unknown")
    job_id = await job.locator(".id").inner_text()
    await person.does("Ask what became of it", "asked", "Nobody can tell")
    await person.does("It was done", "the provider's log has it", f"Job {job_id} is succeeded now")
    assert person.parts.store.job(job_id) is not None
    (record,) = [one for one in person.parts.store.reconcile_log(kind="reconcile") if one["job"] == job_id]
    assert (record["actor"], record["note"], record["outcome"]) == ("ann", "the provider's log has it", "succeeded")


async def other_looks(person: Person, url: str) -> None:
    """Look at it on a phone in the dark, and with its stream gone."""
    running = person.page.context.browser
    assert running is not None
    phone = await (await running.new_context(viewport=PHONE, color_scheme="dark")).new_page()
    await phone.goto(url)
    await expect(phone.locator("#live")).to_have_attribute("data-state", "live")
    await Person(phone, person.parts).pictures("phone")
    await person.page.context.set_offline(True)
    await person.page.evaluate("closeStream(); openStream()")
    await expect(person.page.locator("#live")).to_have_attribute("data-state", "not-live", timeout=WAIT_MS)
    await person.page.evaluate("scrollTo(0, 0)")
    await person.pictures("not-live")


@pytest.mark.e2e
@pytest.mark.timeout(150)
@ON_BOTH
def test_a_person_takes_a_whole_incident_from_the_page(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = quick(tmp_path, timings=TIMINGS, thresholds=THRESHOLDS, canary_required_ok=12)
        async with Parts(redis_url, settings) as parts, served(parts) as client, browser() as running:
            page = await running.new_page(viewport=DESK)
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            url = str(client.base_url.join("/"))
            await page.goto(url)
            person = Person(page, parts)
            await incident(person)
            await recovery(person)
            await holds(person)
            await reconciles(person)
            await other_looks(person, url)
            assert complaints == []

    asyncio.run(scenario())
