"""What a person is doing on the page in a real browser while the page goes on living under it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Page, expect

from tests.automation_parts import ON_BOTH, Parts
from tests.browsing import browser
from tests.webhooks import served, still

pytestmark = ON_BOTH

# The second reading from now on: the first may have been made before.
SECOND_READING = """new Promise((done) => {
  let heard = 0;
  source.addEventListener("reading", () => { heard += 1; if (heard === 2) done(); });
})"""
SELECT = "(node) => getSelection().selectAllChildren(node)"
SELECTED = "getSelection().toString()"

# The queue can't be read any more, and then the button is let go.
UNREAD_THEN_LET_GO = """new Promise((done) => {
  const body = { failed: "Connection refused", since: "03:00:00", build: document.body.dataset.build };
  source.close();
  source.dispatchEvent(new MessageEvent("unread", { data: JSON.stringify(body) }));
  document.dispatchEvent(new PointerEvent("pointerup"));
  setTimeout(() => done(live.dataset.state), 100);
})"""


@asynccontextmanager
async def live(redis_url: str, folder: Path) -> AsyncIterator[tuple[Parts, Page]]:
    async with still(redis_url, folder) as parts, served(parts) as client, browser() as running:
        page = await running.new_page()
        await page.goto(str(client.base_url.join("/")))
        await expect(page.locator("#live")).to_have_attribute("data-state", "live")
        yield parts, page


async def press(page: Page, place: str) -> None:
    """Press the mouse's button over it, and keep it pressed."""
    await page.locator(place).hover()
    await page.mouse.down()


def test_a_click_counts_though_what_is_pressed_changes(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (parts, page):
            await press(page, "#do-drain")
            await asyncio.to_thread(parts.store.order, "reject", "bob", "the other region is slow")
            await page.evaluate(SECOND_READING)
            await expect(page.locator(".state")).to_have_text("admit")
            await page.mouse.up()
            await expect(page.locator("h1")).to_have_text("Drain now: queue default")
            await page.go_back()
            await expect(page.locator(".state")).to_have_text("reject_new")

    asyncio.run(scenario())


def test_what_came_while_a_button_was_pressed_is_shown_after_it(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (parts, page):
            await press(page, "#gate-title")
            await asyncio.to_thread(parts.store.order, "reject", "bob", "the other region is slow")
            await page.evaluate(SECOND_READING)
            await asyncio.to_thread(parts.submit, 1)
            await page.evaluate(SECOND_READING)
            await expect(page.locator(".state")).to_have_text("admit")
            await page.mouse.up()
            await expect(page.locator(".state")).to_have_text("reject_new", timeout=1000)

    asyncio.run(scenario())


def test_a_button_that_is_never_let_go_does_not_keep_the_page_old(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (parts, page):
            await press(page, "#gate-title")
            await asyncio.to_thread(parts.store.order, "reject", "bob", "the other region is slow")
            await expect(page.locator(".state")).to_have_text("reject_new")

    asyncio.run(scenario())


def test_what_waits_for_a_button_is_not_shown_as_new_once_the_queue_is_gone(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (_, page):
            await press(page, "#gate-title")
            await page.evaluate(SECOND_READING)
            assert await page.evaluate(UNREAD_THEN_LET_GO) == "not-live"
            await expect(page.locator("#unread-text")).to_contain_text("Connection refused")

    asyncio.run(scenario())


def test_what_is_selected_opened_or_scrolled_stays_so(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (parts, page):
            run = await asyncio.to_thread(parts.open_run)
            await page.set_viewport_size({"width": 390, "height": 844})
            await page.locator("#journal summary").click()
            moves = page.get_by_role("region", name="Moves of the gate")
            await moves.evaluate("(node) => { node.scrollLeft = 40; }")
            await page.locator(f".run a[href='/runs/{run}']").first.evaluate(SELECT)

            await asyncio.to_thread(parts.store.hold, run, None, actor="bob", reason="let me look")
            await expect(page.locator(".run .waits")).to_contain_text("Held until")
            assert await page.evaluate(SELECTED) == run
            assert await page.evaluate("document.activeElement.parentElement.id") == "journal"
            await expect(page.locator("#journal")).to_have_attribute("open", "")
            await asyncio.to_thread(parts.store.order, "drain", "bob", "it is worse")
            await expect(moves.locator("tbody tr").first).to_contain_text("it is worse")
            assert await moves.evaluate("(node) => node.scrollLeft") == 40

    asyncio.run(scenario())


def test_what_is_selected_in_a_list_that_grows_stays_so(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (parts, page):
            await asyncio.to_thread(parts.store.order, "reject", "bob", "the first of two")
            moves = page.get_by_role("region", name="Moves of the gate").locator("tbody tr")
            await expect(moves.first).to_contain_text("the first of two")
            await moves.first.locator("td").nth(3).evaluate(SELECT)
            selected = await page.evaluate(SELECTED)
            await asyncio.to_thread(parts.store.order, "drain", "bob", "the second of two")
            await expect(moves.first).to_contain_text("the second of two")
            assert await page.evaluate(SELECTED) == selected
            assert "the first of two" in selected

    asyncio.run(scenario())


def test_a_button_keeps_the_focus_where_another_comes_before_it(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (parts, page):
            await asyncio.to_thread(parts.store.order, "reject", "bob", "the provider is slow")
            await expect(page.locator(".asked .deeds li")).to_have_count(1)
            await page.locator("#do-release").focus()
            await asyncio.to_thread(parts.store.order, "drain", "bob", "the provider is down")
            await expect(page.locator(".asked .deeds li")).to_have_count(2)
            assert await page.evaluate("document.activeElement.id") == "do-release"

    asyncio.run(scenario())
