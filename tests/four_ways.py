"""A grid of states, and what each of the four that must agree does in it: decide(), the rules, the panels, the gates.

An alert's silence before green is a hold: that is what every recovery looks like. Where a figure lies exactly on a line
of a panel, both sides of the line count, for a drawn line has none.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from dashboards.model import Colour, Panel
from dashboards.overview import overview
from rules.alert import SluicegateAction
from rules.generate import RULES_FILE, catalogue, chain, render_rules
from rules.promtool import find_promtool
from runbooks.context import Context
from runbooks.gates import canary_gate, overall, reopen_gate
from runbooks.library import load_builtin
from runbooks.verdict import Verdict
from sluicegate import telemetry as names
from sluicegate.gate import BesideRunbook, DrainState, Runbook
from sluicegate.policy import Action, Figures, decide
from sluicegate.settings import Settings
from sluicegate.telemetry import ProviderWindow, Telemetry
from tests.readings import EMPTY, with_gate

NONE = Action.ADMIT
EPSILON = 1e-3
_CALLS = 1000
# promtool joins the series of a test in time that grows with the square of their number.
_TOGETHER = 100
_SELECTED, _LABELLED = 'queue="default"', re.compile(r'^ +queue: "default"\n', re.MULTILINE)
_GOT = re.compile(r'\{queue=\\?"(state-\d+)\\?", sluicegate_action=\\?"(\w+)\\?"\}')
_ACTIONS = {
    SluicegateAction.ROLLBACK: Action.ROLL_BACK,
    SluicegateAction.DRAIN: Action.DRAIN,
    SluicegateAction.HOLD: Action.HOLD,
    SluicegateAction.REJECT_NEW: Action.REJECT_NEW,
}
# What outweighs what.
_STRENGTH = (Action.ROLL_BACK, Action.DRAIN, Action.HOLD, Action.REJECT_NEW, NONE)


@dataclass(frozen=True, slots=True)
class State:
    """Hold one point of the grid; a None is a figure without a sample."""

    age: float | None
    slack: float | None
    provider: ProviderWindow | None
    gate: DrainState
    canaries_ok: int
    duplicates: int | None

    def reading(self, settings: Settings) -> Telemetry:
        """Give the state as the controller and the gates read it; no age is the age of an empty queue."""
        required = settings.contract.canaries_required
        recovering = self.gate is DrainState.RECOVERING
        shown = replace(
            EMPTY,
            queue_age_p95_seconds=self.age or 0.0,
            deadline_slack_p10_seconds=self.slack,
            provider=self.provider or EMPTY.provider,
            ready=0 if self.slack is None else 5,
        )
        return with_gate(
            shown,
            drain_state=self.gate.value,
            canary_ok_count=self.canaries_ok,
            canaries_required=required,
            green=recovering and self.canaries_ok >= required,
            duplicates_unacknowledged=self.duplicates or 0,
        )

    def series(self) -> Iterator[tuple[str, str, float]]:
        """Give the state as the exporter shows it: metric, further labels, value."""
        if self.age is not None:
            yield names.QUEUE_AGE_P95_SECONDS, "", self.age
        if self.slack is not None:
            yield names.DEADLINE_SLACK_P10_SECONDS, "", self.slack
        if self.provider is not None and self.provider.rate_5xx is not None and self.provider.rate_timeout is not None:
            yield names.PROVIDER_5XX_RATE, "", self.provider.rate_5xx
            yield names.PROVIDER_TIMEOUT_RATE, "", self.provider.rate_timeout
            yield names.PROVIDER_WINDOW_CALLS, "", self.provider.calls
            yield names.PROVIDER_WINDOW_FAILED_CALLS, "", self.provider.failed
        yield names.DRAIN_STATE, f',drain_state="{self.gate}"', 1
        yield names.CANARY_OK_COUNT, "", self.canaries_ok
        yield names.JOBS, ',state="pending"', 5
        if self.duplicates is not None:
            yield names.DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED, "", self.duplicates


def grid(settings: Settings) -> tuple[State, ...]:
    """Cross each threshold, a little under, at and a little over it, and no sample, with each state of the gate."""
    bounds, required = settings.contract.thresholds, settings.contract.canaries_required
    ages = (bounds.recovered_age_p95_seconds, bounds.reject_age_p95_seconds, bounds.drain_age_p95_seconds)
    slacks = (bounds.reject_slack_p10_seconds, bounds.recovered_slack_p10_seconds)
    gates = ((state, 0) for state in DrainState if state is not DrainState.RECOVERING)
    recovering = ((DrainState.RECOVERING, required + by) for by in (-1, 0, 1))
    points = itertools.product(
        (None, 0.0, *_around(ages)), (None, *_around(slacks)), _windows(settings), (*gates, *recovering), (None, 0, 1)
    )
    return tuple(State(age, slack, window, *gate, duplicates) for age, slack, window, gate, duplicates in points)


def _around(bounds: Sequence[float]) -> Iterator[float]:
    for bound in bounds:
        yield from (bound - EPSILON, bound, bound + EPSILON)


def _windows(settings: Settings) -> tuple[ProviderWindow | None, ...]:
    """Give windows around both rates on many calls, and around each count of the sample rule on few."""
    bounds = settings.contract.thresholds
    errors, timeouts = (
        round(rate * _CALLS) for rate in (bounds.drain_provider_5xx_rate, bounds.drain_provider_timeout_rate)
    )
    calls, failed, least = bounds.sample_min_calls, bounds.sample_min_failed, bounds.drain_min_failed
    around = (-1, 0, 1)
    return (
        None,
        *(_window(_CALLS, status_5xx=errors + by) for by in around),
        *(_window(_CALLS, timeouts=timeouts + by) for by in around),
        *(_window(calls + by, status_5xx=least) for by in around),
        *(_window(calls - 1, timeouts=failed + by) for by in around),
        *(_window(calls, timeouts=least + by) for by in around),
    )


def _window(calls: int, *, status_5xx: int = 0, timeouts: int = 0) -> ProviderWindow:
    return ProviderWindow(seconds=30.0, calls=calls, status_5xx=status_5xx, timeouts=timeouts)


def by_decide(settings: Settings, states: Sequence[State]) -> list[set[Action]]:
    """Ask the controller's decision."""
    bounds = settings.contract.thresholds
    return [{decide(Figures.of(state.reading(settings)), bounds).action} for state in states]


def by_rules(settings: Settings, states: Sequence[State], folder: Path) -> list[set[Action]]:
    """Ask the alerts, by promtool: every state is a queue of its own, and the rules take them all.

    promtool tells what it got where it was told to expect nothing.
    """
    spoken = [one for one in catalogue(settings) if one.action in _ACTIONS and one.signal != "telemetry"]
    rules = render_rules(settings, [chain(settings, spoken)])
    assert _SELECTED in rules
    (folder / RULES_FILE).write_text(_LABELLED.sub("", rules).replace(_SELECTED, 'queue=~"state-.+"'))
    test = folder / "grid.test.yml"
    with test.open("w") as file:
        file.write(f"rule_files: [{RULES_FILE}]\nevaluation_interval: 2s\ntests:\n")
        for first in range(0, len(states), _TOGETHER):
            _write_test(file, first, states[first : first + _TOGETHER])
    said = subprocess.run([find_promtool(), "test", "rules", str(test)], capture_output=True, text=True, check=False)
    found = _GOT.findall(said.stdout + said.stderr)
    assert found, (said.stdout + said.stderr)[:500]
    firing: list[set[Action]] = [set() for _ in states]
    for queue, action in found:
        firing[int(queue.removeprefix("state-"))].add(_ACTIONS[SluicegateAction(action)])
    required = settings.contract.canaries_required
    return [
        {_strongest(actions, holds=state.gate is DrainState.RECOVERING and state.canaries_ok < required)}
        for state, actions in zip(states, firing, strict=True)
    ]


def _write_test(file: TextIO, first: int, states: Sequence[State]) -> None:
    """Write one test: its series last until `for` has passed and a little more, and it expects no alert at all."""
    file.write("  - interval: 2s\n    input_series:\n")
    for number, state in enumerate(states, first):
        for metric, labels, value in state.series():
            series = f'{metric}{{job="sluicegate",instance="a",queue="state-{number}"{labels}}}'
            file.write(f"      - {{series: '{series}', values: '{value!r}x4'}}\n")
    asked = 'count by (queue, sluicegate_action) (ALERTS{alertstate="firing"})'
    file.write(f"    promql_expr_test:\n      - {{expr: '{asked}', eval_time: 8s, exp_samples: []}}\n")


def by_panels(settings: Settings, states: Sequence[State]) -> list[set[Action]]:
    """Ask the panels' lines and words, as a person reads them."""
    panels = {panel.id: panel for row in overview(settings).rows for panel in row.panels}
    return [_by_panels(settings, panels, state) for state in states]


def _by_panels(settings: Settings, panels: dict[int, Panel], state: State) -> set[Action]:
    recovering = state.gate is DrainState.RECOVERING
    proven = state.canaries_ok >= settings.contract.canaries_required
    if Colour.BAD in _colours(panels[503], state.duplicates):
        return {Action.ROLL_BACK}
    if recovering and not proven:
        return {Action.HOLD}
    if _provider_is_bad(panels, state.provider):
        return {Action.DRAIN}
    answers = set()
    for age, slack in itertools.product(_colours(panels[302], state.age), _colours(panels[301], state.slack)):
        if recovering:
            answers.add(NONE if age is Colour.GOOD and slack is Colour.GOOD else Action.HOLD)
        elif age is Colour.BAD:
            answers.add(Action.DRAIN)
        else:
            answers.add(Action.REJECT_NEW if age is Colour.WARN or slack is Colour.BAD else NONE)
    return answers


def _provider_is_bad(panels: dict[int, Panel], window: ProviderWindow | None) -> bool:
    if window is None:
        return False
    counted = [int(number) for number in re.findall(r"\d+", panels[403].says)]
    calls, failed, least = counted
    assert calls == panels[403].steps[-1].value
    speaks = (window.calls >= calls or window.failed >= failed) and window.failed >= least
    rates = ((panels[401], window.rate_5xx), (panels[402], window.rate_timeout))
    return speaks and any(_above(panel, rate) is Colour.BAD for panel, rate in rates)


def _colours(panel: Panel, value: float | None) -> set[Colour]:
    """Give the colour of a value; two where it lies on a line; good where there is none."""
    if value is None:
        return {Colour.GOOD}
    on_a_line = any(step.value == value for step in panel.steps)
    return {_above(panel, value), *({_above(panel, value - EPSILON)} if on_a_line else set())}


def _above(panel: Panel, value: float | None) -> Colour:
    return [step.colour for step in panel.steps if step.value is None or (value is not None and value >= step.value)][
        -1
    ]


def by_gates(settings: Settings, states: Sequence[State]) -> list[set[Action]]:
    """Ask the gates of the runbooks: what confirms a run, and in a recovery what must pass before anything opens."""
    context = Context(settings)
    shipped = {name: load_builtin(name).confirm for name in (*Runbook, *BesideRunbook)}
    answers = []
    for state in states:
        reading = state.reading(settings)
        confirmed = {name for name, confirm in shipped.items() if confirm.verdict(reading, context) is Verdict.PASS}
        if Runbook.ROLLBACK_AND_AUDIT in confirmed:
            answers.append({Action.ROLL_BACK})
        elif state.gate is DrainState.RECOVERING:
            answers.append(_in_a_recovery(settings, reading, watched=BesideRunbook.HOLD_RECOVERY in confirmed))
        elif Runbook.DRAIN_AND_RECOVER in confirmed:
            answers.append({Action.DRAIN})
        else:
            answers.append({Action.REJECT_NEW if BesideRunbook.REJECT_AND_PREPARE in confirmed else NONE})
    return answers


def _in_a_recovery(settings: Settings, reading: Telemetry, *, watched: bool) -> set[Action]:
    """Give what the run's own gates say; nothing where hold-recovery would watch what they would open, or not."""
    if overall(canary_gate(reading, settings.contract)) is not Verdict.PASS:
        return {Action.HOLD}
    checks = {check.name: check.verdict for check in reopen_gate(reading, settings.contract)}
    if Verdict.FAIL in (checks[names.PROVIDER_5XX_RATE], checks[names.PROVIDER_TIMEOUT_RATE]):
        return {Action.DRAIN}
    opens = set(checks.values()) == {Verdict.PASS}
    return {NONE if opens else Action.HOLD} if opens is not watched else set()


def _strongest(actions: set[Action], *, holds: bool) -> Action:
    return next(one for one in _STRENGTH if one in actions or (one is Action.HOLD and holds) or one is NONE)
