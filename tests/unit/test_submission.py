"""What a producer may submit: bounds, ids, keys and fingerprints."""

from __future__ import annotations

import pytest

from sluicegate.errors import UsageError
from sluicegate.submission import MAX_KEY, MAX_PAYLOAD_BYTES, build_submission, one_identity


def test_the_id_is_the_key_under_either_name() -> None:
    assert build_submission("lint-fix", "{}", job_id="j1").idempotency_key == "j1"
    assert one_identity(None, "k1") == one_identity("k1", None) == one_identity("k1", "k1") == "k1"
    assert one_identity(None, None) is None
    with pytest.raises(UsageError, match="one identity"):
        one_identity("j1", "k1")


def test_the_fingerprint_is_of_class_and_payload_alone() -> None:
    base = build_submission("lint-fix", "{}", job_id="j1")
    same = build_submission("lint-fix", "{}", job_id="j2", deadline_s=3, cost_class="browser")
    assert base.fingerprint == same.fingerprint
    assert base.fingerprint != build_submission("lint-fix", "{ }", job_id="j1").fingerprint
    # Class and payload can't run into each other.
    assert build_submission("ab", "c", job_id="j").fingerprint != build_submission("a", "bc", job_id="j").fingerprint


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"job_id": ""}, "idempotency key"),
        ({"job_id": "a b"}, "idempotency key"),
        ({"job_id": "x" * (MAX_KEY + 1)}, "idempotency key"),
        ({"job_id": "é"}, "idempotency key"),
        ({"job_id": "j1\n"}, "idempotency key"),
        ({"job_id": "canary:x"}, "kept for canaries"),
        ({"job_class": ""}, "class"),
        ({"job_class": "a:\tb"}, "class"),
        ({"cost_class": ""}, "cost class"),
        ({"payload": "x" * (MAX_PAYLOAD_BYTES + 1)}, "payload"),
        ({"payload": "\ud800"}, "not valid Unicode"),
        ({"payload": {"path": "a.py"}}, "The payload of job j1 is dict, not text"),
        ({"payload": b"{}"}, "The payload of job j1 is bytes, not text"),
        ({"payload": None}, "The payload of job j1 is NoneType, not text"),
        ({"job_id": 4711}, "The idempotency key 4711 is int, not text"),
        ({"deadline_s": 0}, "deadline_s"),
        ({"deadline_s": float("nan")}, "deadline_s"),
        ({"deadline_ts": float("inf")}, "deadline_ts"),
        ({"deadline_s": 1e300}, r"deadline_s is 1e\+300, not a time above 0 s and below 1e\+11 s"),
        ({"deadline_s": "5"}, "deadline_s is str, not a number"),
        ({"deadline_ts": b"5"}, "deadline_ts is bytes, not a number"),
        ({"deadline_s": 1, "deadline_ts": 2}, "one deadline"),
    ],
)
def test_a_field_outside_its_bound_is_named(fields: dict[str, object], named: str) -> None:
    whole = {"job_class": "lint-fix", "payload": "{}", "job_id": "j1"} | fields
    with pytest.raises(UsageError, match=named):
        build_submission(**whole)  # type: ignore[arg-type]  # the columns of the table differ in type


def test_the_bounds_themselves_are_allowed() -> None:
    submission = build_submission("c" * 64, "x" * MAX_PAYLOAD_BYTES, job_id="j" * MAX_KEY, deadline_s=0.001)
    assert (submission.size, submission.deadline_in_ms) == (MAX_PAYLOAD_BYTES, 1)
