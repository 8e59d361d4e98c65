"""What a person is doing on the page in a real browser while the page goes on living under it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from tests.automation_parts import ON_BOTH, Parts
from tests.browsing import browser
from tests.webhooks import served, still

pytestmark = ON_BOTH

# The second reading from now on: the first may have been made before.
SECOND_READING = """new Promise((done) => {
  let heard = 0;
  source.addEventListener("reading", () => { heard += 1; if (heard === 2) done(); });
})"""
# All the same, the page could change: this one would push what is below out from under the pointer.
PUSH_DOWN = """change(() => {
  const block = document.createElement("p");
  block.id = "pushed";
  block.style.height = "200px";
  parts.prepend(block);
})"""
UNREAD = """source.dispatchEvent(new MessageEvent("unread", { data: JSON.stringify(
  { failed: "Connection refused", since: "03:00:00", build: document.body.dataset.build }) }))"""
ANOTHER_BUILD = """source.dispatchEvent(new MessageEvent("reading", { data: JSON.stringify({ build: "another" }) }))"""
SELECT = "(node) => getSelection().selectAllChildren(node)"
SELECTED = "getSelection().toString()"


@asynccontextmanager
async def live(redis_url: str, folder: Path, *, is_still: bool = False) -> AsyncIterator[tuple[Parts, Page]]:
    """Open the page on a touch screen that has a mouse, too; with `is_still` its timers wait for `page.clock`."""
    async with still(redis_url, folder) as parts, served(parts) as client, browser() as running:
        page = await running.new_page(has_touch=True)
        if is_still:
            await page.clock.install()
        await page.goto(str(client.base_url.join("/")))
        await expect(page.locator("#live")).to_have_attribute("data-state", "live")
        if is_still:
            await page.clock.pause_at(time.time() + 60)
            # The leap made it old; the next reading is of now.
            await expect(page.locator("#live")).to_have_attribute("data-state", "live")
        yield parts, page


async def middle(page: Page, place: str) -> tuple[float, float]:
    box = await page.locator(place).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def press(page: Page, place: str) -> None:
    """Press the mouse's button over it, and keep it pressed."""
    await page.mouse.move(*await middle(page, place))
    await page.mouse.down()


async def is_asked_to_confirm(page: Page) -> None:
    await expect(page.locator("h1")).to_have_text("Drain now: queue default", timeout=15_000)


def test_a_click_counts_though_the_gate_moves_meanwhile(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path, is_still=True) as (parts, page):
            await press(page, "#do-drain")
            await asyncio.to_thread(parts.store.order, "reject", "bob", "the other region is slow")
            await page.evaluate(SECOND_READING)
            await expect(page.locator(".state")).to_have_text("admit")
            await page.mouse.up()
            await is_asked_to_confirm(page)

    asyncio.run(scenario())


@pytest.mark.parametrize("change", [PUSH_DOWN, UNREAD, ANOTHER_BUILD], ids=["push", "unread", "build"])
def test_a_click_counts_whatever_else_would_change_the_page(redis_url: str, tmp_path: Path, change: str) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (_, page):
            await press(page, "#do-drain")
            await page.evaluate(change)
            await asyncio.sleep(0.3)  # a page that is loaded anew takes a moment to go
            await page.mouse.up()
            await is_asked_to_confirm(page)

    asyncio.run(scenario())


def test_a_click_counts_though_the_page_has_fallen_silent(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path, is_still=True) as (_, page):
            await page.set_viewport_size({"width": 390, "height": 844})
            await press(page, "#do-drain")
            await page.evaluate("source.close(); heardAt = 0")
            await page.clock.run_for(700)  # it is looked at every half second
            assert await page.locator("#live").get_attribute("data-state") == "live"
            await page.mouse.up()
            await is_asked_to_confirm(page)

    asyncio.run(scenario())


def test_a_finger_s_tap_counts_though_it_comes_late(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (_, page):
            x, y = await middle(page, "#do-drain")
            hand = await page.context.new_cdp_session(page)
            await hand.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
            await page.evaluate(PUSH_DOWN)
            await hand.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
            await is_asked_to_confirm(page)

    asyncio.run(scenario())


def test_what_came_while_a_button_was_pressed_is_shown_after_it(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path, is_still=True) as (parts, page):
            await press(page, "#gate-title")
            await asyncio.to_thread(parts.store.order, "reject", "bob", "the other region is slow")
            await page.evaluate(SECOND_READING)
            await expect(page.locator(".state")).to_have_text("admit")
            await page.mouse.up()
            await page.clock.run_for(350)
            assert await page.locator(".state").inner_text() == "reject_new"

    asyncio.run(scenario())


@pytest.mark.parametrize("lifted", [False, True])
def test_a_press_that_makes_no_click_does_not_keep_the_page_old(redis_url: str, tmp_path: Path, lifted: bool) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path, is_still=True) as (_, page):
            await press(page, "#gate-title")
            await page.evaluate(PUSH_DOWN)
            if lifted:
                await page.mouse.move(*await middle(page, "#do-drain"))
                await page.evaluate("document.addEventListener('click', (event) => event.stopPropagation(), true)")
                await page.mouse.up()
            wait_ms = 350 if lifted else 2000
            await page.clock.run_for(wait_ms - 50)
            await expect(page.locator("#pushed")).to_have_count(0)
            await page.clock.run_for(50)
            await expect(page.locator("#pushed")).to_have_count(1)

    asyncio.run(scenario())


def test_a_press_that_became_a_scroll_keeps_nothing_waiting(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path, is_still=True) as (_, page):
            await press(page, "#gate-title")
            await page.evaluate(PUSH_DOWN)
            await page.evaluate("document.dispatchEvent(new PointerEvent('pointercancel'))")
            await page.clock.run_for(1)
            assert await page.locator("#pushed").count() == 1

    asyncio.run(scenario())


def test_however_often_somebody_presses_a_change_waits_for_two_seconds_at_most(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path, is_still=True) as (_, page):
            await press(page, "#gate-title")
            await page.evaluate(PUSH_DOWN)
            for _ in range(6):
                await page.mouse.up()
                await page.clock.run_for(300)
                assert await page.locator("#pushed").count() == 0
                await page.mouse.down()
            await page.clock.run_for(201)
            assert await page.locator("#pushed").count() == 1

    asyncio.run(scenario())


def test_a_page_that_is_pressed_again_and_again_says_that_it_has_fallen_silent(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path, is_still=True) as (_, page):
            await page.evaluate("source.close()")
            await page.mouse.move(*await middle(page, "#gate-title"))
            for _ in range(19):
                await page.mouse.down()
                await page.mouse.up()
                await page.clock.run_for(300)
            assert await page.locator("#live").get_attribute("data-state") == "not-live"
            assert await page.title() == "not live · default"

    asyncio.run(scenario())


@pytest.mark.parametrize("way", ["key", "mouse"])
def test_what_was_asked_for_comes_though_its_answer_is_slow_and_the_page_is_of_another_build(
    redis_url: str, tmp_path: Path, way: str
) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (_, page):

            async def slow(route: Route) -> None:
                await asyncio.sleep(4)
                await route.continue_()

            await page.route("**/do/**", slow)
            # Later than a press holds the page, and while the answer is on its way.
            await page.evaluate(f"setTimeout(() => {{ {ANOTHER_BUILD}; }}, 3000)")
            if way == "key":
                await page.locator("#do-drain").press("Enter", no_wait_after=True)
            else:
                await page.locator("#do-drain").click(no_wait_after=True)
            await is_asked_to_confirm(page)

    asyncio.run(scenario())


def test_a_page_of_another_build_that_cannot_be_loaded_yet_is_not_live(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (_, page):
            await page.evaluate(f"dispatchEvent(new Event('beforeunload')); {ANOTHER_BUILD}")
            assert await page.locator("#live").get_attribute("data-state") == "not-live"
            assert await page.locator("#parts").get_attribute("data-old") is not None
            assert await page.title() == "not live · default"

    asyncio.run(scenario())


def test_a_clock_that_is_put_back_makes_no_old_page_live(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path, is_still=True) as (_, page):
            await page.evaluate("source.close(); const was = Date.now; Date.now = () => was() - 3600_000")
            await page.clock.run_for(4000)
            assert await page.locator("#live").get_attribute("data-state") == "not-live"

    asyncio.run(scenario())


def test_a_tab_that_rests_says_so_and_is_old_until_it_has_heard_again(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (_, page):
            assert await page.title() == "admit · default"
            await page.route("**/live", lambda _: None)  # nothing answers it
            await press(page, "#gate-title")
            await page.evaluate(SECOND_READING)
            await look(page, "hidden")
            assert await page.title() == "at rest · default"
            await page.evaluate("endPress()")
            assert await page.title() == "at rest · default", "what waited for the end of a press is of before"
            await look(page, "visible")
            assert await page.locator("#live").get_attribute("data-state") == "opening"
            assert await page.locator("#parts").get_attribute("data-old") is not None
            assert await page.title() == "opening · default"
            await page.unroute("**/live")
            await expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=15_000)
            assert await page.title() == "admit · default"
            assert await page.locator("#parts").get_attribute("data-old") is None

    asyncio.run(scenario())


async def look(page: Page, state: str) -> None:
    """Look away from the tab, or at it again, as the browser tells the page."""
    await page.evaluate(
        """(state) => {
          Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )


def test_a_reading_that_waited_is_not_shown_as_new_once_the_queue_is_gone(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path, is_still=True) as (_, page):
            await press(page, "#gate-title")
            await page.evaluate(SECOND_READING)
            await page.evaluate(f"source.close(); {UNREAD}")
            await page.mouse.up()
            await page.clock.run_for(350)
            await expect(page.locator("#live")).to_have_attribute("data-state", "not-live")
            await expect(page.locator("#unread-text")).to_contain_text("Connection refused")

    asyncio.run(scenario())


def test_what_is_selected_focused_opened_or_scrolled_stays_so(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (parts, page):
            run = await asyncio.to_thread(parts.open_run)
            await page.set_viewport_size({"width": 390, "height": 844})
            await page.locator("#journal summary").click()
            await page.locator("#step-2 summary").click()
            moves = page.get_by_role("region", name="Moves of the gate")
            await moves.evaluate("(node) => { node.scrollLeft = 40; }")
            entry = page.locator("#journal tbody tr").first.locator("td").nth(2)
            said = await entry.inner_text()
            await entry.evaluate(SELECT)

            # Its buttons go and others come, its head says more, and its journal grows at the top.
            await asyncio.to_thread(parts.store.hold, run, None, actor="bob", reason="let me look")
            await expect(page.locator(".run .waits")).to_contain_text("Held until")
            assert await page.evaluate(SELECTED) == said
            assert await page.evaluate("document.activeElement.parentElement.id") == "step-2"
            for opened in ("#journal", "#step-2"):
                await expect(page.locator(opened)).to_have_attribute("open", "")
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
            # In a place of its own it is made anew.
            await page.evaluate("""swap("asked", '<nav><a id="do-release" href="/">Release the pin</a></nav>')""")
            assert await page.evaluate("document.activeElement.id") == "do-release"

    asyncio.run(scenario())


# Kinds of nodes with and without ids and keys, text, and a drawing: some of one kind next to each other.
PIECES = """[
  "<p>one</p>", "<p>two</p>", "<p id='three'>three</p>", "<p data-key='four \\" <'>four</p>", "text", " ",
  "<ul><li data-key='a'><a id='a' href='/a'>a</a></li><li data-key='b'><a id='b' href='/b'>b</a></li></ul>",
  "<ol><li>1</li><li><details id='d'><summary>s</summary><span>t</span></details></li></ol>",
  "<table><tbody><tr data-key='1'><td>1</td></tr><tr data-key='2'><td>2</td></tr></tbody></table>",
  "<svg viewBox='0 0 9 9'><line class='x' x1='1'/><polyline points='1,2 3,4'/></svg>", "<!-- a comment -->",
  "<time data-ms='1'>then</time>", "<time>then</time>",
]"""
# Random parts, one after the other (the generator is that of Numerical Recipes); gives those that came out wrong.
FUZZ = f"""() => {{
  const pieces = {PIECES};
  let seed = 7;
  const draw = (below) => {{
    seed = (1664525 * seed + 1013904223) % 4294967296;
    return Math.floor(seed / 65536) % below;
  }};
  const wrong = [];
  for (let round = 0; round < 2000; round += 1) {{
    const html = Array.from({{ length: draw(9) }}, () => pieces[draw(pieces.length)]).join("");
    const fresh = document.createElement("div");
    fresh.dataset.part = "past";
    fresh.innerHTML = html;
    swap("past", html);
    sayAges();
    for (const time of document.querySelectorAll("[data-part=past] time[data-ms]")) delete time.dataset.ago;
    if (!document.querySelector("[data-part=past]").isEqualNode(fresh)) wrong.push(html);
  }}
  return wrong;
}}"""


def test_a_part_becomes_what_was_sent_whatever_it_was_before(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with live(redis_url, tmp_path) as (_, page):
            await page.evaluate("closeStream()")
            assert await page.evaluate(FUZZ) == []

    asyncio.run(scenario())
