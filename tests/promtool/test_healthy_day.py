"""Twenty-four healthy hours with noise and bursts wake nobody, or once: the real promtool on simulated figures."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from rules.alert import Severity
from rules.cases import Signal
from rules.expectation import UnitTest
from rules.generate import RULES_FILE, catalogue, chain, render_rules, render_tests
from rules.promtool import find_promtool
from rules.scope import Scope
from rules.situations import healthy, key
from rules.test_sets import TestSet
from sluicegate import records
from sluicegate import telemetry as names
from sluicegate.records import AlertName
from sluicegate.settings import Settings, default_settings
from sluicegate.telemetry import CLASS_LABEL

# An hour each; another list is another day.
SEEDS = range(20_261_130, 20_261_154)
MOST_PAGES = 1
STEP_S, HOUR_S, SHORT_S = 2, 3600, 900
# The day goes on: what an hour's windows look back on is the end of the hour before, and counts in that.
BEFORE_S = 120
SIGMA_S = 8.0
# The drill's load, what its workers take, and a burst of three times the load.
ARRIVING_PER_S, TAKEN_PER_S = 12.0, 20.0
BURST_TIMES, BURST_S, EVERY_S = 3, 20, 600
VARYING = (
    records.QUEUE_AGE,
    records.CLASS_PREDICTED_WAIT,
    records.SLACK,
    records.CLASS_SLACK,
)
_STARTS = re.compile(r'\{alertname=\\?"(\w+)\\?"\} (\S+?)(?:,|$)', re.MULTILINE)
Story = Callable[[int], Iterator[float]]


def waits(lasts_s: int) -> Iterator[float]:
    """Give how long a job waits at every step: work arrives in bursts, and is taken at a steady pace."""
    backlog = 0.0
    for at_s in range(0, lasts_s, STEP_S):
        arriving = ARRIVING_PER_S * (BURST_TIMES if at_s % EVERY_S >= EVERY_S - BURST_S else 1)
        backlog = max(0.0, backlog + (arriving - TAKEN_PER_S) * STEP_S)
        yield backlog / TAKEN_PER_S


def stalls(lasts_s: int) -> Iterator[float]:
    """Give the same waits, but in the last minute nobody takes anything."""
    for number, wait in enumerate(waits(lasts_s)):
        yield wait + max(0, number * STEP_S - (lasts_s - 60))


def stretch(settings: Settings, seed: int, waited: Sequence[float]) -> UnitTest:
    """Simulate a stretch of time: age and slack by the waits, and noise on every slack."""
    chance = random.Random(seed)
    classes = {name: one.deadline_s for name, one in settings.contract.classes.items()}
    shortest = min(classes.values())

    def slack(deadline_s: float) -> Sequence[float]:
        return [deadline_s - wait + chance.gauss(0, SIGMA_S) for wait in waited]

    figures = {
        names.QUEUE_AGE_P95_SECONDS: waited,
        **{key(names.CLASS_PREDICTED_WAIT_SECONDS, **{CLASS_LABEL: name}): waited for name in classes},
        names.DEADLINE_SLACK_P10_SECONDS: slack(shortest),
        **{key(names.CLASS_SLACK_P10_SECONDS, **{CLASS_LABEL: name}): slack(one) for name, one in classes.items()},
    }
    series = {}
    for one, signal in healthy(Scope(settings)).items():
        metric, _, labels = one.removesuffix("}").partition("{")
        series[f'{metric}{{job="sluicegate",instance="a",queue="default"{"," + labels if labels else ""}}}'] = (
            " ".join(f"{value:.3f}" for value in figures[one])
            if one in figures
            else (signal or Signal(0)).spell(0, len(waited), STEP_S)
        )
    return UnitTest(f"seed {seed}", series, ())


def pages(settings: Settings, seeds: range, lasts_s: int, folder: Path, story: Story = waits) -> dict[str, int]:
    """Count how often each page begins to fire in a stretch of a day, for every seed.

    A page that reads nothing that varies has a test of its own in which nothing varies.
    """
    varying = {record.name for record in VARYING}
    waking = [one for one in catalogue(settings) if one.severity is Severity.PAGE and varying & set(one.reads)]
    group = chain(settings, waking)
    (folder / RULES_FILE).write_text(render_rules(settings, [group]))
    waited = [*[0.0] * (BEFORE_S // STEP_S), *story(lasts_s)]
    hours = tuple(stretch(settings, seed, waited) for seed in seeds)
    text = render_tests(settings, TestSet("day.test.yml", STEP_S, STEP_S, hours), [group])
    firing = 'ALERTS{alertstate="firing",severity="page"}'
    counted = f"sum by (alertname) (count_over_time(({firing} unless {firing} offset {STEP_S}s)[{lasts_s}s:{STEP_S}s]))"
    last_s = BEFORE_S + lasts_s - STEP_S
    asked = f"    promql_expr_test:\n      - {{expr: '{counted}', eval_time: {last_s}s, exp_samples: []}}\n"
    head, *tests = text.split("  - name: ")
    (folder / "day.test.yml").write_text(head + "".join(f"  - name: {test.rstrip()}\n{asked}" for test in tests))
    answer = subprocess.run(
        [find_promtool(), "test", "rules", str(folder / "day.test.yml")], capture_output=True, text=True, check=False
    )
    said = answer.stdout + answer.stderr
    assert answer.returncode == 0 or "got:" in said, said[:500]
    found: dict[str, int] = {}
    for name, times in _STARTS.findall(said):
        found[name] = found.get(name, 0) + round(float(times))
    return found


def test_noise_and_a_burst_wake_nobody(tmp_path: Path) -> None:
    assert pages(default_settings(), SEEDS[:1], SHORT_S, tmp_path) == {}


def test_a_stall_in_the_same_noise_is_forecast(tmp_path: Path) -> None:
    assert AlertName.DEADLINE_BREACH_FORECAST in pages(default_settings(), SEEDS[:1], SHORT_S, tmp_path, stalls)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_noisy_day_with_bursts_wakes_nobody_or_once(tmp_path: Path) -> None:
    found = pages(default_settings(), SEEDS, HOUR_S, tmp_path)

    print(f"pages in 24 healthy hours: {found or 'none'}")
    assert sum(found.values()) <= MOST_PAGES
