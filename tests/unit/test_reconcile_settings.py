"""The settings of reconciliation: a call that is under way must have ended, and a URL must name the key."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.errors import SettingsError
from sluicegate.settings import load, parse


def parsed(**reconcile: Any) -> Any:
    return parse({**load(None, {}).model_dump(mode="json"), "reconcile": reconcile}, "a test").reconcile


def test_the_defaults_wait_for_the_longest_call() -> None:
    assert parsed().after_s >= load(None, {}).contract.timings.call_timeout_max_s
    assert parsed().automatic


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"after_s": 5}, "reconcile.after_s is 5, below call_timeout_max_s of 10"),
        ({"ask_again_s": 700}, "reconcile.ask_again_s is 700, above ask_again_max_s of 600"),
        ({"http_url": "https://billing.internal/effects"}, "http_url"),
        ({"http_url": "billing.internal/{key}"}, "http_url"),
        ({"http_url": "https://billing.internal/{key}/{key}"}, "http_url"),
        ({"http_timeout_s": 0}, "http_timeout_s"),
    ],
)
def test_what_could_not_work_is_refused_by_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parsed(**changes)


def test_a_url_with_the_key_is_taken() -> None:
    assert parsed(http_url="https://billing.internal/effects/{key}?full=1").http_url is not None
