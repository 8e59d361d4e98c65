"""What the fault proxy decides to do with a request."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drill.faults import FAULTS, Plan, Stream
from drill.toxics import ControlError, Toxic, decode_object, parse_toxic, plan_request, updated_toxic


def toxic(kind: str, *, stream: str = "downstream", toxicity: float = 1.0, **attributes: object) -> Toxic:
    return parse_toxic({"type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes})


def plan(*toxics: Toxic, seed: int = 0) -> Plan:
    return plan_request(toxics, random.Random(seed))[0]


def test_does_nothing_without_toxics() -> None:
    assert plan() == Plan()


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers())
def test_latency_stays_within_its_jitter_and_above_zero(latency: int, jitter: int, seed: int) -> None:
    delay_ms = plan(toxic("latency", latency=latency, jitter=jitter), seed=seed).answer_delay_s * 1000
    assert max(0, latency - jitter) - 1e-6 <= delay_ms <= latency + jitter + 1e-6


def test_latencies_add_up_by_direction() -> None:
    both = plan(
        toxic("latency", latency=100), toxic("latency", latency=200), toxic("latency", stream="upstream", latency=50)
    )
    assert (both.request_delay_s, both.answer_delay_s) == pytest.approx((0.05, 0.3))


def test_the_first_status_wins_and_keeps_the_delay() -> None:
    first = toxic("status", status=429, retry_after_s=30)
    both = plan(first, toxic("status", status=503), toxic("latency", latency=100))
    assert (both.status, both.retry_after_s, both.answer_delay_s) == (429, 30, 0.1)


def test_the_first_break_wins_and_is_named() -> None:
    hang = parse_toxic({"name": "hang", "type": "timeout"})
    broken, breaker = plan_request((hang, toxic("reset_peer", timeout=10)), random.Random(0))
    assert breaker == "hang"
    assert broken.broken is not None
    assert (broken.broken.after_s, broken.broken.reset) == (None, False)
    assert broken.breaks(Stream.DOWNSTREAM)
    assert not broken.breaks(Stream.UPSTREAM)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_toxicity_of_zero_touches_nothing(kind: str) -> None:
    assert all(plan(toxic(kind, toxicity=0.0), seed=seed) == Plan() for seed in range(50))


@given(st.floats(0, 1), st.floats(0, 1))
def test_toxicity_and_probability_multiply(toxicity: float, probability: float) -> None:
    down = toxic("status", toxicity=toxicity, probability=probability)
    rng = random.Random(1)
    hits = sum(plan_request((down,), rng)[0].status is not None for _ in range(400))
    assert abs(hits / 400 - toxicity * probability) < 0.13  # over five standard deviations


@pytest.mark.parametrize("kind", FAULTS)
def test_shows_attributes_that_read_back_as_the_same_fault(kind: str) -> None:
    made = toxic(kind)
    assert type(made.fault).parse(made.fault.attributes()) == made.fault
    assert updated_toxic(made, {}) == made


def test_an_update_changes_what_it_names_only() -> None:
    before = toxic("status", status=503, probability=0.08)
    after = updated_toxic(before, {"toxicity": 0.5, "attributes": {"probability": 1}})
    assert after.fault.attributes() == {"status": 503, "probability": 1.0, "retry_after_s": None}
    assert (after.toxicity, after.name, after.stream) == (0.5, before.name, before.stream)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"type": "slicer"},
        {"type": 3},
        {"type": "latency", "name": 3},
        {"type": "latency", "stream": "both"},
        {"type": "latency", "toxicity": True},
        {"type": "latency", "toxicity": -0.1},
        {"type": "latency", "attributes": [1]},
        {"type": "latency", "attributes": {"latency": 1.5}},
        {"type": "latency", "attributes": {"latency": -1}},
        {"type": "latency", "attributes": {"latency": True}},
        {"type": "latency", "attributes": {"jitter": None}},
        {"type": "status", "attributes": {"status": 600}},
        {"type": "status", "attributes": {"probability": 1.01}},
        {"type": "status", "attributes": {"retry_after_s": "soon"}},
        {"type": "timeout", "attributes": {"timeout": -1}},
        {"type": "reset_peer", "attributes": {"timeout": "now"}},
    ],
)
def test_refuses_bad_toxics_as_the_callers_mistake(raw: dict[str, object]) -> None:
    with pytest.raises(ControlError) as caught:
        parse_toxic(raw)
    assert caught.value.status == 400


@given(st.binary(max_size=40))
@example(b"[1]")
@example(b"\xff")
def test_refuses_any_body_that_is_no_object_as_the_callers_mistake(body: bytes) -> None:
    with pytest.raises(ControlError) as caught:
        decode_object(b"[" + body)  # whatever follows, it is no object
    assert caught.value.status == 400
