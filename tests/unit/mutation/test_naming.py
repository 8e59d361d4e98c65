"""Which parts of the library a test names, where it asks the library's source itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.function_values import worth
from tests.mutation.naming import functions_named


def passes(client: Any, gate: str) -> bool:
    return worth(client, f"return F.{gate}({{}})") is True


def asking_by_word(client: Any) -> None:
    assert passes(client, "ramp_passes")


def opened(client: Any) -> bool:
    return passes(client, "reopening_passes")


def asking_through_two(client: Any) -> None:
    assert opened(client)


def asking_plainly(client: Any) -> None:
    assert worth(client, "return G.silent(q, g) and pcall(digits, 1)")


def asking_nothing() -> None:
    assert sorted("commands") != []


@pytest.mark.parametrize(
    ("asking", "named"),
    [
        (asking_by_word, "F.ramp_passes"),
        (asking_through_two, "F.reopening_passes"),
        (asking_plainly, "G.silent"),
        (asking_plainly, "digits"),
    ],
)
def test_what_a_test_asks_for_is_named(request: pytest.FixtureRequest, asking: Any, named: str) -> None:
    item = pytest.Function.from_parent(request.node.parent, name=asking.__name__, callobj=asking)

    assert named in functions_named(item)


def asking_with_a_word_of_many_meanings(client: Any) -> None:
    client.set("drain_state", "admit")
    assert worth(client, "return 1") == 1


def test_a_word_is_a_command_only_where_commands_are_asked_for(request: pytest.FixtureRequest) -> None:
    asking = asking_with_a_word_of_many_meanings
    item = pytest.Function.from_parent(request.node.parent, name=asking.__name__, callobj=asking)

    assert "commands.admit" not in functions_named(item)


def test_what_it_does_not_ask_for_is_not(request: pytest.FixtureRequest) -> None:
    item = pytest.Function.from_parent(request.node.parent, name="asking_nothing", callobj=asking_nothing)

    assert "F.ramp_passes" not in functions_named(item)
