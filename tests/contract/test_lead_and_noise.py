"""With the default settings a stall pages long before the first missed deadline, and a day of noise pages nobody.

Both are histories of figures, replayed as a real Prometheus evaluates them.
"""

from __future__ import annotations

import random
import time

import pytest

from drill.children import Children
from rules.alert import Severity
from rules.backtest.history import History, Inputs
from rules.backtest.run import Backtest, backtest, utilization, warm_up_ms
from rules.backtest.shown import first_page
from rules.scope import Scope
from rules.situations import jobs, key
from sluicegate import telemetry
from sluicegate.prometheus import Prometheus
from sluicegate.settings import default_settings
from tests.recorded import DAY_S, Course, Recording, serve

SETTINGS = default_settings()
SCRAPE_S = SETTINGS.monitoring.scrape_interval_s
CLASS, DEADLINE_S = "lint-fix", 60.0
# What the contract takes at most; what the drill's six places do in a second at 0.3 s a call, and its load.
MOST_PENDING, CAPACITY_PER_S, LOAD_PER_S = 180.0, 20.0, 12.0
CLASS_SLACK = key(telemetry.CLASS_SLACK_P10_SECONDS, **{telemetry.CLASS_LABEL: CLASS})
SLACK, AGE = telemetry.DEADLINE_SLACK_P10_SECONDS, telemetry.QUEUE_AGE_P95_SECONDS
WAITS = tuple(
    key(telemetry.CLASS_PREDICTED_WAIT_SECONDS, **{telemetry.CLASS_LABEL: name}) for name in SETTINGS.contract.classes
)
MISSED = key(
    telemetry.CLASS_DEADLINE_OUTCOMES_TOTAL, **{telemetry.CLASS_LABEL: CLASS, telemetry.OUTCOME_LABEL: "missed"}
)


def replayed(children: Children, lasts_s: float, drawn: dict[str, Course]) -> Backtest:
    begins_s = time.time() // 60 * 60 - lasts_s
    server = serve(children, Recording(SETTINGS, lasts_s, drawn=drawn), begins_s)
    scope = Scope(SETTINGS)
    from_ms, to_ms = round(begins_s * 1000), round((begins_s + lasts_s) * 1000)
    history = History.find(Prometheus(server.url), scope, from_ms - warm_up_ms(SETTINGS), to_ms, Inputs.RECORDS)
    return backtest(history, from_ms, utilization(scope))


def stall(begins_s: float, slack_s: float, age_s: float) -> dict[str, Course]:
    """Let the workers get nothing done any more: every waiting job loses a second a second, until it is too late."""

    def since(at_s: float) -> float:
        return max(0.0, at_s - begins_s)

    return {
        CLASS_SLACK: lambda at_s: slack_s - since(at_s),
        SLACK: lambda at_s: slack_s - since(at_s),
        AGE: lambda at_s: age_s + since(at_s),
        MISSED: lambda at_s: max(0.0, since(at_s) - slack_s),
        telemetry.WORKER_INFLIGHT: lambda at_s: 6 if since(at_s) else 3,
        jobs("running"): lambda at_s: 6 if since(at_s) else 3,
    }


def test_the_first_page_of_a_stall_comes_long_before_the_first_missed_deadline(children: Children) -> None:
    found = replayed(children, 900, stall(600, slack_s=50, age_s=3))
    (incident,) = found.harm.incidents
    page = first_page(found, incident)
    assert page is not None
    assert page[1] >= 15_000, page
    busy_ms = found.harm.lead_ms(incident, found.beside.pages)
    assert busy_ms is not None
    assert busy_ms < 0, "an alert on utilization comes when deadlines have been missed already"
    assert sum(one.false_pages for one in found.alerts) == 0


def backlogs(lasts_s: float) -> list[float]:
    """Give the backlog at each scrape: three times the load for 20 s in every 10 minutes, up to the contract."""
    found, pending = [], 0.0
    for number in range(round(lasts_s / SCRAPE_S)):
        load = LOAD_PER_S * (3 if number * SCRAPE_S % 600 < 20 else 1)
        pending = min(MOST_PENDING, max(0.0, pending + (load - CAPACITY_PER_S) * SCRAPE_S))
        found.append(pending)
    return found


def healthy_day(seed: int, lasts_s: float) -> dict[str, Course]:
    """Let the slack have a noise of 8 s (σ), and the load its bursts."""
    chance = random.Random(seed)
    pending = backlogs(lasts_s)
    noise = [chance.gauss(0, 8) for _ in pending]

    def at(values: list[float]) -> Course:
        return lambda at_s: values[round(at_s / SCRAPE_S)]

    age = [max(0.0, one / CAPACITY_PER_S) for one in pending]
    slack = [min(DEADLINE_S, DEADLINE_S - 1 - one + more) for one, more in zip(age, noise, strict=True)]
    return {CLASS_SLACK: at(slack), SLACK: at(slack), AGE: at(age), **dict.fromkeys(WAITS, at(age))}


def pages(found: Backtest) -> dict[str, int]:
    """Count the pages by their alert, whatever it is about."""
    return {one.tried.name: len(one.pages) for one in found.alerts if one.pages and one.tried.severity is Severity.PAGE}


@pytest.mark.parametrize(
    ("hours", "seed"), [(1, 1), pytest.param(24, 2, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]
)
def test_healthy_hours_of_noise_and_bursts_page_at_most_once(children: Children, hours: int, seed: int) -> None:
    lasts_s = hours * DAY_S / 24
    found = replayed(children, lasts_s, healthy_day(seed, lasts_s))
    assert len(found.evaluations.all) >= lasts_s / SCRAPE_S - 1
    assert sum(pages(found).values()) <= 1, pages(found)
    assert found.harm.incidents == ()
