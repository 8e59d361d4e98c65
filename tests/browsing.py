"""A headless Chromium for tests, as Debian has it, and what axe-core finds on a page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from dashboards.chromium import find_chromium

# Of what axe finds, these two keep people from using a page.
_GRAVE = frozenset({"serious", "critical"})


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Run a browser that reaches for nothing but what a test opens."""
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        try:
            yield running
        finally:
            await running.close()


async def grave_faults(page: Page) -> list[str]:
    """Give what axe-core finds that is serious or critical: the rule, and where."""
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    await page.evaluate(source)
    found: dict[str, Any] = await page.evaluate("() => axe.run()")
    assert found["passes"], "axe looked at nothing"
    return [
        f"{one['id']} ({one['impact']}): {node['html']}"
        for one in found["violations"]
        if one["impact"] in _GRAVE
        for node in one["nodes"]
    ]
