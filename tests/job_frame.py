"""The frame of a call, in Lua, for tests of what the functions do with one job."""

from __future__ import annotations

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
COSTS, CLASSES = ("-", "browser"), ("known", "other")
PAIRS = [f"{job_class}:{cost}" for job_class in CLASSES for cost in COSTS]


def frame(*, max_pending: int = 10, failed_ms: int = 2 * DAY_MS, final_ms: int = 5000) -> str:
    """Give a call's frame with settings, and one job's record as `J.read` gives it."""
    return (
        f"local q = {{ p = '', now = {NOW_MS}, us = {NOW_MS}000, counted = {{}}, lifetimes = {{}}, woken = 0, s = {{"
        f" max_pending = {max_pending}, dispatch = 'fifo', retry_budget = 5, loss_budget = 2, timings = {{"
        f" margin_ms = 400, final_retention_ms = {final_ms}, failed_retention_ms = {failed_ms} }},"
        " cost_classes = { browser = {} },"
        " classes = { known = { deadline_ms = 1000 }, long = { deadline_ms = 3000 } } } }"
        " local function job(state, more) local j = { id = 'x', state = state, class = 'known', cost = '-',"
        f" attempt = 1, retries = 0, losses = 0, rev = 1, fence = 5, deadline = {NOW_MS} + 1000,"
        f" eligible = {NOW_MS} - 50 }}"
        " for name, value in pairs(more or {}) do j[name] = value end return j end "
    )
