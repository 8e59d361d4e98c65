"""A form's token is good once, for one caller, one deed and one target, for a while."""

from __future__ import annotations

import pytest

from automation.callers import Caller
from automation.page.form_token import FormTokens
from sluicegate.web.roles import Role

ANN = Caller("ann", "ann", Role.APPROVE)
PLACE = "/do/hold"


def test_it_is_good_for_whom_and_what_it_was_made() -> None:
    tokens = FormTokens()
    assert tokens.is_good(tokens.make(ANN, PLACE), ANN, PLACE)


@pytest.mark.parametrize(
    ("caller", "place"),
    [
        (Caller("bob", "bob", Role.APPROVE), PLACE),
        (Caller("ann", "ann", Role.VIEW), PLACE),
        (Caller(), PLACE),
        (ANN, "/do/release"),
        (ANN, "/do/hold?run=run-1"),
    ],
)
def test_it_is_good_for_nobody_and_nothing_else(caller: Caller, place: str) -> None:
    tokens = FormTokens()
    assert not tokens.is_good(tokens.make(ANN, PLACE), caller, place)


@pytest.mark.parametrize("text", ["", ".", "..", "1.2.3", "x", "9" * 4000, "9.é.é"])
def test_what_this_process_did_not_make_is_no_token(text: str) -> None:
    assert not FormTokens().is_good(text, ANN, PLACE)


def test_another_process_s_token_is_none_here() -> None:
    assert not FormTokens().is_good(FormTokens().make(ANN, PLACE), ANN, PLACE)


def test_it_grows_old_and_a_later_time_can_t_be_written_into_it() -> None:
    now = [1000.0]
    tokens = FormTokens(lambda: now[0])
    token = tokens.make(ANN, PLACE)
    now[0] += 1790
    assert tokens.is_good(token, ANN, PLACE)
    now[0] += 20
    assert not tokens.is_good(token, ANN, PLACE)
    _, rest = token.split(".", 1)
    assert not tokens.is_good(f"{int(now[0])}.{rest}", ANN, PLACE)


def test_a_used_one_gives_what_was_left_with_it_and_old_ones_are_forgotten() -> None:
    tokens = FormTokens()
    first = tokens.make(ANN, PLACE)
    assert tokens.use(first) is None
    assert tokens.use(first) == ""
    tokens.leave(first, "mark")
    assert tokens.use(first) == "mark"
    for _ in range(500):
        tokens.use(tokens.make(ANN, PLACE))
    tokens.leave(first, "never")
    assert tokens.use(first) is None
