"""The page in a real browser: by keyboard, live and not, with JavaScript off, on a phone in the dark."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from automation.starting import start_arguments
from sluicegate.producer import Producer
from sluicegate.submission import Submission
from tests.automation_parts import ON_BOTH, RECOVERY, Parts
from tests.browsing import browser, grave_faults
from tests.webhooks import served, still

pytestmark = ON_BOTH

PHONE = ViewportSize(width=390, height=844)


def address(client: httpx.AsyncClient) -> str:
    return str(client.base_url.join("/"))


async def live_page(running: Browser, client: httpx.AsyncClient) -> tuple[Page, list[str]]:
    """Open the page and wait until it is live; gives what the browser complains of, too."""
    page = await running.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.goto(address(client))
    await expect(page.locator("#live")).to_have_attribute("data-state", "live")
    return page, complaints


def test_the_page_lives_acts_by_keyboard_and_says_so(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client, browser() as running:
            page, complaints = await live_page(running, client)
            await expect(page.locator("h1")).to_have_text("The gate of queue default is admit")
            assert await grave_faults(page) == []

            # A deed by keyboard alone, while the page goes on living under the focus.
            await page.locator("#do-drain").focus()
            await asyncio.sleep(1.1)
            assert await page.evaluate("document.activeElement.id") == "do-drain"
            await page.keyboard.press("Enter")
            await page.locator("#actor").wait_for()
            assert await grave_faults(page) == []
            await page.locator("#actor").focus()
            await page.keyboard.type("ann")
            await page.keyboard.press("Tab")
            await page.keyboard.type("the provider is down")
            await page.keyboard.press("Enter")
            await expect(page.locator(".outcome")).to_contain_text("is drain now, pinned (operator)")
            await expect(page.locator("#live")).to_have_attribute("data-state", "live")
            await expect(page.locator("#said")).to_contain_text(
                "drain: no job is admitted or pulled, pinned (operator)"
            )
            assert parts.store.gate_log(1)[0].note == "the provider is down"
            assert await grave_faults(page) == []

            await parts_moved(parts, page)
            assert complaints == []

    asyncio.run(scenario())


async def parts_moved(parts: Parts, page: Page) -> None:
    """Move the gate from elsewhere: the page and its title follow without a reload."""
    await page.evaluate("window.stayed = true")
    await asyncio.to_thread(parts.store.order, "open", "bob", "it is back")
    await expect(page.locator(".state")).to_have_text("admit")
    await expect(page).to_have_title("admit · default")
    assert await page.evaluate("window.stayed")


def test_a_dropped_stream_is_seen_and_recovers_by_itself(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client, browser() as running:
            page, _ = await live_page(running, client)
            await page.context.set_offline(True)
            await page.route("**/live", lambda route: route.abort())
            await page.evaluate("closeStream(); openStream()")
            await expect(page.locator("#live")).to_have_attribute("data-state", "not-live", timeout=8000)
            await expect(page.locator("#live-text")).to_contain_text("Not live since")
            await expect(page.locator("#parts")).to_have_attribute("data-old", "")
            assert await grave_faults(page) == []
            await asyncio.to_thread(parts.store.order, "drain", "bob", "meanwhile")
            await page.context.set_offline(False)
            await page.unroute("**/live")
            await expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=8000)
            await expect(page.locator(".state")).to_have_text("drain")
            assert await page.locator("#parts").get_attribute("data-old") is None

            # A service of another version has other parts to send: its page is loaded anew.
            await page.evaluate("window.stayed = true; document.body.dataset.build = 'another'")
            await expect(page.locator("body")).not_to_have_attribute("data-build", "another")
            assert await page.evaluate("window.stayed") is None
            await expect(page.locator("#live")).to_have_attribute("data-state", "live")

    asyncio.run(scenario())


def test_a_request_for_the_stream_that_is_lost_on_its_way_is_made_again(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client, browser() as running:
            page = await running.new_page()
            asked: list[str] = []
            await page.route("**/live", lambda route: asked.append(route.request.url))  # and nothing answers it
            await page.goto(address(client))
            await expect(page.locator("#live")).to_have_attribute("data-state", "not-live", timeout=8000)
            assert len(asked) == 1
            await page.evaluate("heardAt -= 10_000")  # as if it had waited for so long
            await parts.until(lambda: len(asked) > 1, "a second request")
            await page.unroute("**/live")
            await page.evaluate("heardAt -= 10_000")
            await expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=8000)

    asyncio.run(scenario())


MARKUP_OF_A_KEY = "<img/src=x/onerror=window.hacked=1>"
MARKUP = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>{{ 7*7 }}"


def test_what_came_from_outside_is_text_in_a_browser_too(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        lasting = still(redis_url, tmp_path, timings={"controller_silent_s": 3600})
        async with lasting as parts, served(parts) as client, browser() as running:
            page, complaints = await live_page(running, client)
            # Everything of it comes by the stream, into a page that is open.
            parts.store.order("hold", MARKUP, MARKUP)
            parts.store.order("release", MARKUP, MARKUP)
            Producer(parts.store).submit_many([Submission(MARKUP_OF_A_KEY, "lint-fix", MARKUP)])
            (job,) = parts.store.claim(MARKUP, "r1", 1).jobs
            base = {"worker": MARKUP, "id": job.job_id, "fence": str(job.fence), "request": "r2"}
            parts.store.settle(base | {"outcome": "unknown", "call": {"kind": "dropped", "latency_ms": 1}})
            assert parts.store.open_run(start_arguments(RECOVERY, MARKUP, MARKUP)).answer == "moved"
            await expect(page.locator(".run")).to_contain_text(MARKUP)
            await expect(page.locator(".jobs")).to_contain_text(MARKUP_OF_A_KEY)
            await expect(page.locator(".past")).to_contain_text(MARKUP)
            for place in ("/", f"/runs/{parts.store.runs()[0].run_id}"):
                await page.goto(address(client).rstrip("/") + place)
                assert await page.evaluate("window.hacked") is None
                assert await page.locator("img").count() == 0
                assert await page.locator("script:not([src])").count() == 0
            assert complaints == []

    asyncio.run(scenario())


def test_without_javascript_the_page_shows_and_acts(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client, browser() as running:
            context = await running.new_context(java_script_enabled=False, viewport=PHONE, color_scheme="dark")
            page = await context.new_page()
            await page.goto(address(client))
            await expect(page.locator("h1")).to_contain_text("admit")
            await expect(page.locator("#live")).to_contain_text("As of")
            await page.get_by_role("link", name="Hold the gate").click()
            await page.get_by_label("Your name").fill("ann")
            await page.get_by_label("Why").fill("nothing moves while I look")
            await page.get_by_role("button", name="Hold the gate").click()
            await expect(page.locator(".outcome")).to_contain_text("admit")
            assert parts.state() == ("admit", "operator", None)
            await page.get_by_role("link", name="Look again").click()
            await expect(page.locator(".asked")).to_contain_text("The gate is pinned (operator)")

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_cut_off_and_every_button_can_be_hit(redis_url: str, tmp_path: Path, scheme: str) -> None:
    async def scenario() -> None:
        async with still(redis_url, tmp_path) as parts, served(parts) as client, browser() as running:
            parts.store.order("drain", "bob", "x" * 400)
            parts.open_run()
            context = await running.new_context(viewport=PHONE, color_scheme="dark" if scheme == "dark" else "light")
            page = await context.new_page()
            await page.goto(address(client))
            await expect(page.locator("#live")).to_have_attribute("data-state", "live")
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            for box in [await one.bounding_box() for one in await page.locator("a.button").all()]:
                assert box is not None
                assert box["height"] >= 44
            # The gate and what is asked come before anything else.
            order = await page.evaluate("[...document.querySelectorAll('main section')].map(one => one.className)")
            assert order[1:4] == ["gate", "asked", "run"]
            assert await grave_faults(page) == []

    asyncio.run(scenario())
