"""Do decide() and the gate together do what the decision table says, under every provider and backlog condition?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import pytest

from sluicegate.gate import DrainState, GateState, PinReason, RollbackReason, Runbook, Stored, effective_pin
from sluicegate.gate_events import Apply
from sluicegate.policy import Action, Figures, Thresholds, decide, exit_condition_holds
from sluicegate.transition import transition
from tests.gate_events import describe_state
from tests.unit.gate.conditions import AGES, CONDITIONS, SLACKS, Condition, Provider, figures
from tests.unit.gate.view import Explored, View

BOUNDS = Thresholds()
LIVE = Runbook.DRAIN_AND_RECOVER


def gate(drain_state: DrainState, **fields_: object) -> GateState:
    return GateState(stored=Stored.OK, drain_state=drain_state, **fields_)  # type: ignore[arg-type]


ADMIT = gate(DrainState.ADMIT)
REJECT_NEW = gate(DrainState.REJECT_NEW)
DRAIN = gate(DrainState.DRAIN)
CANARIES = gate(DrainState.RECOVERING, run=LIVE)
GREEN = gate(DrainState.RECOVERING, run=LIVE, green=True)
RAMP = gate(DrainState.ADMIT, run=LIVE, ramp=True, reopened=True)


def tick(state: GateState, condition: Condition, dwelt: bool = True) -> GateState:
    """Adopt, look, decide and apply, as one tick does; `dwelt` says that the dwell has passed as far as it ever may."""
    state = View(state).adopted.state
    seen = figures(state, condition)
    held = dwelt and exit_condition_holds(seen, BOUNDS)
    return transition(state, Apply(decide(seen, BOUNDS).action, held=held)).state


def _told(state: GateState, condition: Condition) -> str:
    return f"{describe_state(state)} under {condition} became {describe_state(tick(state, condition))}"


# --- the five lines of the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [ADMIT, DRAIN, CANARIES, GREEN, RAMP], ids=describe_state)
def test_high_cpu_with_flat_age_and_high_slack_is_observed_only(state: GateState) -> None:
    """No utilisation is among the figures at all, so busy workers with a flat queue move nothing."""
    assert not [each.name for each in fields(Figures) if "cpu" in each.name or "memory" in each.name]
    for age in (0.0, 14.0):
        calm = Condition(Provider.FINE, age, 60.0)
        assert tick(state, calm) == state, _told(state, calm)


@pytest.mark.parametrize("provider", [Provider.FINE, Provider.RARE_5XX, Provider.RARE_TIMEOUTS, Provider.TOO_FEW_CALLS])
@pytest.mark.parametrize("age", [20.0, 24.0])
def test_a_rising_age_with_low_5xx_rejects_new(age: float, provider: Provider) -> None:
    assert tick(ADMIT, Condition(provider, age, 60.0)) == REJECT_NEW
    assert tick(REJECT_NEW, Condition(provider, age, 60.0)) == REJECT_NEW


def test_an_age_just_under_the_bound_admits_on() -> None:
    assert tick(ADMIT, Condition(Provider.FINE, 19.0, 60.0)) == ADMIT


def test_reject_new_opens_only_on_recovered_figures_held_for_the_dwell() -> None:
    for condition in CONDITIONS:
        expected = DrainState.ADMIT if condition.recovered else DrainState.REJECT_NEW
        expected = DrainState.DRAIN if condition.must_drain else expected
        assert tick(REJECT_NEW, condition).drain_state is expected, condition
        assert tick(REJECT_NEW, condition, dwelt=False).drain_state is not DrainState.ADMIT, condition


@pytest.mark.parametrize("state", [ADMIT, REJECT_NEW], ids=describe_state)
@pytest.mark.parametrize("provider", [Provider.HIGH_5XX, Provider.HIGH_TIMEOUTS, Provider.TOTAL_HANG])
def test_high_5xx_or_timeouts_drain_now(provider: Provider, state: GateState) -> None:
    for age in AGES:
        for slack in SLACKS:
            assert tick(state, Condition(provider, age, slack)) == DRAIN


@pytest.mark.parametrize("state", [ADMIT, REJECT_NEW], ids=describe_state)
def test_an_age_past_its_bound_drains_now(state: GateState) -> None:
    assert tick(state, Condition(Provider.FINE, 25.0, 60.0)) == DRAIN


@pytest.mark.parametrize("slack", [-1.0, 3.0, 5.0, 15.0])
def test_passed_canaries_with_low_slack_hold_admission(slack: float) -> None:
    low = Condition(Provider.FINE, 0.0, slack)
    assert decide(figures(GREEN, low), BOUNDS).action is Action.HOLD
    assert tick(GREEN, low) == GREEN


def test_a_duplicate_after_recovery_closes_and_audits() -> None:
    """The run that reopened is superseded by the audit; the gate is drain, pinned, with the reason."""
    state = gate(DrainState.ADMIT, run=LIVE, ramp=True, duplicates=True)
    for condition in CONDITIONS:
        after = tick(state, condition)
        assert after.drain_state is DrainState.DRAIN
        assert after.run is Runbook.ROLLBACK_AND_AUDIT
        assert after.rollback_reason is RollbackReason.DUPLICATE_SIDE_EFFECT
        assert after.pin is PinReason.ROLLED_BACK


# --- the rows of what is applied, over every reachable state and every condition ----------------------------------


@dataclass(frozen=True)
class Looked:
    """Hold one tick: the state, what the controller saw, and what it made of it."""

    state: GateState
    condition: Condition
    after: GateState


@pytest.fixture(scope="module")
def looked(explored: Explored) -> list[Looked]:
    """Return a tick of every readable state under a condition of each kind that decide() and the hysteresis tell apart.

    Conditions that lead to the same decision, reason and dwell in a state are one: only these reach the gate.
    """
    return list(_ticks(explored))


def _ticks(explored: Explored) -> Iterator[Looked]:
    kinds: dict[tuple[object, ...], list[tuple[Condition, Apply]]] = {}
    for state in explored.exploration.states:
        if not View(state).readable:
            continue
        # The tick adopts hand edits first and looks then.
        base = View(state).adopted.state
        key = (base.drain_state, base.green, base.duplicates, base.run is None, base.rollback_reason, base.pin)
        if key not in kinds:
            kinds[key] = list(_kinds(base))
        for condition, event in kinds[key]:
            yield Looked(state, condition, transition(base, event).state)


def _kinds(state: GateState) -> Iterator[tuple[Condition, Apply]]:
    known = set()
    for condition in CONDITIONS:
        seen = figures(state, condition)
        decision = decide(seen, BOUNDS)
        held = exit_condition_holds(seen, BOUNDS)
        verdict = (decision, held, condition.must_drain, condition.must_reject, condition.recovered)
        if verdict not in known:
            known.add(verdict)
            yield condition, Apply(decision.action, held=held)


def test_the_controller_opens_only_on_recovered_figures(looked: list[Looked]) -> None:
    """Whatever the controller loosens (the hysteresis), age < 15 s, slack > 15 s and no provider breach stood then."""
    opened = [each for each in looked if View(each.after).tightness < View(each.state).adopted.tightness]
    assert opened
    for each in opened:
        assert each.condition.recovered, each
        assert not each.condition.must_drain, each
        assert each.state.drain_state is DrainState.REJECT_NEW, each


def test_a_drain_condition_leaves_nothing_admitting_or_pulling(looked: list[Looked]) -> None:
    """After one tick under a provider breach no ordinary job is admitted or pulled, in any state."""
    for each in looked:
        if each.condition.provider.must_drain:
            assert not View(each.after).admits, each
            assert not View(each.after).pulls, each


def test_an_old_queue_drains_unless_it_is_the_kept_backlog(looked: list[Looked]) -> None:
    """Age past 25 s drains every gate but a recovering one, whose kept backlog is old by design."""
    for each in looked:
        if each.condition.age >= 25 and View(each.state).adopted.reading is not DrainState.RECOVERING:
            assert View(each.after).reading is DrainState.DRAIN, each


def test_a_reject_condition_leaves_nothing_admitting(looked: list[Looked]) -> None:
    for each in looked:
        if each.condition.must_reject:
            assert not View(each.after).admits, each


def test_only_a_breach_a_duplicate_or_a_lost_run_tightens(looked: list[Looked]) -> None:
    """Under calm figures no tick tightens anything, adoption and orphaned recoveries apart."""
    for each in looked:
        calm = not each.condition.must_reject and not each.state.duplicates
        base = View(each.state).adopted
        orphan = not base.live and (base.state.ramp or base.state.drain_state is DrainState.RECOVERING)
        if calm and not orphan:
            assert View(each.after).tightness <= base.tightness, each


def test_a_breach_from_green_to_the_ramps_end_is_the_runs_rollback(looked: list[Looked]) -> None:
    """After green a provider breach, in the ramp also age and slack, end in drain/closed, pinned, with the reason."""
    for each in looked:
        base = View(each.state).adopted.state
        if not base.recovery_live or base.duplicates or base != each.state:
            continue
        if (base.green and each.condition.provider.must_drain) or (base.ramp and each.condition.must_reject):
            assert each.after.drain_state is DrainState.DRAIN, each
            assert each.after.rollback_reason is RollbackReason.QUEUE_AGE_NOT_RECOVERING, each
            assert each.after.pin is PinReason.ROLLED_BACK, each


def test_before_green_no_condition_ends_the_recovery(looked: list[Looked]) -> None:
    """Old errors in the window don't end a recovery: only canaries decide."""
    for each in looked:
        waits = each.state.recovery_live and each.state.drain_state is DrainState.RECOVERING and not each.state.green
        if waits and not each.state.duplicates and not View(each.state).edited:
            assert each.after == each.state, each


def test_in_drain_no_condition_moves_anything(looked: list[Looked]) -> None:
    for each in looked:
        if each.state.drain_state is DrainState.DRAIN and not each.state.duplicates and not View(each.state).edited:
            assert each.after == each.state, each


def test_no_condition_leaves_a_pin_but_a_breach_may_still_tighten(looked: list[Looked]) -> None:
    """Pinned stops loosening, never tightening."""
    pinned = [each for each in looked if effective_pin(each.state) is not None]
    assert all(effective_pin(each.after) is not None for each in pinned)
    tightened = [each for each in pinned if View(each.after).tightness > View(each.state).adopted.tightness]
    assert {each.state.drain_state for each in tightened} >= {DrainState.ADMIT, DrainState.REJECT_NEW}
