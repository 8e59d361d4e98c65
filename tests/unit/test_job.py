"""Does a job's arithmetic follow contract §3: timeouts, back-off, and what each end of a call does to its job?"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.job import (
    FINAL_STATES,
    MOVES,
    Call,
    CallKind,
    Effects,
    Job,
    JobState,
    Outcome,
    RetryRules,
    Settlement,
    effects_of,
    settle_after,
)

RULES = RetryRules(
    margin_s=2.0,
    call_timeout_max_s=10.0,
    call_timeout_min_s=1.0,
    call_reserve_s=1.0,
    backoff_first_s=2.0,
    backoff_max_s=30.0,
)


def middle() -> float:
    return 0.5


def job(effects: Effects = Effects.KEYED, retries_used: int = 0, attempt: int | None = None) -> Job:
    return Job(
        job_id="j-1",
        job_class="lint-fix",
        deadline_ms=60_000,
        attempt=retries_used + 1 if attempt is None else attempt,
        retries_used=retries_used,
        idempotency_key="k-1",
        fence=7,
        epoch=3,
        window=3,
        effects=effects,
        payload="{}",
    )


@pytest.mark.parametrize(
    ("remaining_s", "timeout_s"),
    [(60.0, 10.0), (11.001, 10.0), (11.0, 10.0), (10.999, 9.999), (5.0, 4.0), (2.0, 1.0), (1.999, 1.0), (0.0, 1.0)],
)
def test_the_calls_timeout_is_min_10_max_1_remaining_less_1(remaining_s: float, timeout_s: float) -> None:
    assert RULES.call_timeout_s(remaining_s) == pytest.approx(timeout_s)


@given(st.floats(2.0, 10_000))
def test_a_call_that_may_start_ends_before_its_deadline(remaining_s: float) -> None:
    """From the margin of 2 s on, the timeout leaves the reserve of 1 s."""
    assert RULES.call_timeout_s(remaining_s) <= remaining_s - RULES.call_reserve_s
    assert RULES.call_timeout_min_s <= RULES.call_timeout_s(remaining_s) <= RULES.call_timeout_max_s


@pytest.mark.parametrize(
    ("remaining_s", "timeout_s", "may"), [(11.001, 10.0, True), (11.0, 10.0, False), (2.0, 1.0, False), (-1, 1, False)]
)
def test_a_call_in_progress_finishes_in_a_drain_only_with_slack(
    remaining_s: float, timeout_s: float, may: bool
) -> None:
    assert RULES.may_finish_in_drain(remaining_s, timeout_s) is may


@pytest.mark.parametrize(("retries_used", "base_s"), [(0, 2), (1, 4), (2, 8), (3, 16), (4, 30), (5, 30), (5000, 30)])
def test_back_off_doubles_from_2_s_to_30_s(retries_used: int, base_s: float) -> None:
    assert RULES.backoff_s(retries_used, middle) == pytest.approx(base_s)
    assert RULES.backoff_s(retries_used, lambda: 0.0) == pytest.approx(base_s * 0.8)
    assert RULES.backoff_s(retries_used, lambda: 1.0) == pytest.approx(base_s * 1.2)


@given(st.integers(0, 10_000), st.integers())
def test_back_off_stays_within_a_fifth_of_its_base(retries_used: int, seed: int) -> None:
    wait_s = RULES.backoff_s(retries_used, random.Random(seed).random)
    base_s = min(30.0, 2.0 * 2 ** min(retries_used, 10))
    assert base_s * 0.8 <= wait_s <= base_s * 1.2


AMBIGUOUS = (CallKind.TIMEOUT, CallKind.DROPPED, CallKind.CANCELLED)
SETTLED: dict[CallKind, dict[Effects, Outcome]] = {
    CallKind.OK: dict.fromkeys(Effects, Outcome.SUCCEEDED),
    CallKind.STATUS_5XX: dict.fromkeys(Effects, Outcome.RETRY),
    CallKind.STATUS_OTHER: dict.fromkeys(Effects, Outcome.RETRY),
    CallKind.REFUSED: dict.fromkeys(Effects, Outcome.NOT_EXECUTED),
    CallKind.TIMEOUT: {
        Effects.NONE: Outcome.RETRY,
        Effects.KEYED: Outcome.RETRY,
        Effects.UNSAFE: Outcome.UNKNOWN,
    },
    CallKind.DROPPED: {
        Effects.NONE: Outcome.RETRY,
        Effects.KEYED: Outcome.RETRY,
        Effects.UNSAFE: Outcome.UNKNOWN,
    },
    CallKind.CANCELLED: {
        Effects.NONE: Outcome.REQUEUED,
        Effects.KEYED: Outcome.REQUEUED,
        Effects.UNSAFE: Outcome.UNKNOWN,
    },
}


@pytest.mark.parametrize("effects", Effects)
@pytest.mark.parametrize("kind", CallKind)
def test_each_end_of_a_call_settles_its_job(kind: CallKind, effects: Effects) -> None:
    settlement = settle_after(Call(kind, latency_s=0.3), job(effects), RULES, middle)
    assert settlement.outcome is SETTLED[kind][effects]
    waits = settlement.outcome in (Outcome.RETRY, Outcome.NOT_EXECUTED)
    assert settlement.delay_s == pytest.approx(2.0 if waits else 0.0)


@pytest.mark.parametrize("effects", Effects)
def test_429_was_not_executed_whatever_the_effects(effects: Effects) -> None:
    call = Call(CallKind.STATUS_OTHER, latency_s=0.1, status=429)
    assert settle_after(call, job(effects), RULES, middle).outcome is Outcome.NOT_EXECUTED


@pytest.mark.parametrize("status", [400, 404, 409, 428, 430])
def test_another_status_is_a_retry(status: int) -> None:
    call = Call(CallKind.STATUS_OTHER, latency_s=0.1, status=status)
    assert settle_after(call, job(), RULES, middle).outcome is Outcome.RETRY


@pytest.mark.parametrize("kind", [CallKind.STATUS_5XX, CallKind.STATUS_OTHER, CallKind.REFUSED])
@pytest.mark.parametrize(("retry_after_s", "delay_s"), [(None, 2.0), (0.0, 2.0), (1.0, 2.0), (7.5, 7.5), (60.0, 60.0)])
def test_retry_after_is_honoured_and_shortens_nothing(
    kind: CallKind, retry_after_s: float | None, delay_s: float
) -> None:
    call = Call(kind, latency_s=0.1, status=429, retry_after_s=retry_after_s)
    assert settle_after(call, job(), RULES, middle).delay_s == pytest.approx(delay_s)


def test_a_drains_requeue_waits_for_nothing() -> None:
    assert settle_after(Call(CallKind.CANCELLED, 0.2), job(), RULES, middle) == Settlement(Outcome.REQUEUED, 0.0)


def test_later_retries_wait_longer() -> None:
    waits = [
        settle_after(Call(CallKind.STATUS_5XX, 0.1, 503), job(retries_used=used), RULES, middle).delay_s
        for used in range(5)
    ]
    assert waits == [2.0, 4.0, 8.0, 16.0, 30.0]


@given(st.sampled_from(CallKind), st.none() | st.integers(200, 599), st.integers(0, 5))
def test_an_ambiguous_unsafe_call_is_never_repeated_by_itself(
    kind: CallKind, status: int | None, retries_used: int
) -> None:
    """And nothing but an ambiguous end makes a job unknown."""
    settlement = settle_after(Call(kind, 0.1, status), job(Effects.UNSAFE, retries_used), RULES, middle)
    assert (settlement.outcome is Outcome.UNKNOWN) is (kind in AMBIGUOUS)


# --- the table of states -------------------------------------------------------------------------------------------


def test_every_state_has_its_row_and_final_states_are_final() -> None:
    assert set(MOVES) == set(JobState)
    assert {state for state, following in MOVES.items() if not following} == FINAL_STATES


def test_no_state_follows_itself() -> None:
    assert all(state not in following for state, following in MOVES.items())


def test_only_a_claim_runs_a_job() -> None:
    """Running is entered from ready alone: not from delayed, unknown or blocked, and never twice."""
    assert {state for state, following in MOVES.items() if JobState.RUNNING in following} == {JobState.READY}


def test_every_state_can_reach_an_end() -> None:
    ends = set(FINAL_STATES)
    for _ in JobState:
        ends |= {state for state, following in MOVES.items() if following & ends}
    assert ends == set(JobState)


def test_a_job_that_was_lost_or_blocked_never_counts_as_done_by_itself() -> None:
    """Unknown and blocked are no ends: only what reconcile or a person writes leaves them."""
    assert JobState.UNKNOWN not in MOVES[JobState.READY] | MOVES[JobState.DELAYED] | MOVES[JobState.BLOCKED]
    assert JobState.SUCCEEDED not in MOVES[JobState.READY] | MOVES[JobState.DELAYED]


def test_what_was_not_executed_is_asked_ever_more_rarely_although_it_uses_no_retry() -> None:
    # given a job that was told 429 three times without a Retry-After
    refused = job(retries_used=0, attempt=4)
    # when it is told so again
    settlement = settle_after(Call(CallKind.STATUS_OTHER, 0.1, 429), refused, RULES, middle)
    # then it waits as long as after three retries
    assert settlement.outcome is Outcome.NOT_EXECUTED
    assert settlement.delay_s == pytest.approx(16)


def test_a_wait_has_an_end_whatever_a_provider_asks_for() -> None:
    asked = Call(CallKind.STATUS_5XX, 0.1, 503, retry_after_s=float("9" * 400))
    assert settle_after(asked, job(Effects.KEYED), RULES, middle) == Settlement(Outcome.RETRY, 1e9)


@pytest.mark.parametrize(
    ("job_class", "effects"),
    [("a", Effects.NONE), ("b", Effects.UNSAFE), ("other", Effects.KEYED), ("gone", Effects.UNSAFE)],
)
def test_what_a_repeat_does_says_the_contract_and_of_a_class_that_is_gone_nobody(
    job_class: str, effects: Effects
) -> None:
    contract = {"classes": {"a": {"effects": "none"}, "b": {"effects": "unsafe"}}}
    assert effects_of(contract, job_class) is effects
