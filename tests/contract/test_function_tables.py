"""Do the functions in Lua and the modules in Python hold the same tables and the same names?"""

from __future__ import annotations

import json
import re
from typing import Any

from sluicegate import functions, keys
from sluicegate.gate import DrainState, PinReason, RollbackReason, Runbook
from sluicegate.gate_events import Order, StepMove
from sluicegate.job import AMBIGUOUS, MOVES
from sluicegate.policy import Thresholds
from sluicegate.settings import Contract, default_settings
from tests.function_values import value_of

# The state that follows is a variable there; every state has its own key.
_BUILT = {"queue:"}


def lua_source() -> str:
    return functions.body()


def test_job_moves_are_the_same(client: Any) -> None:
    moves = value_of(client, "JOB_MOVES")

    assert {state: set(following) for state, following in moves.items()} == {
        state.value: {following.value for following in allowed} for state, allowed in MOVES.items() if allowed
    }


def test_the_calls_that_may_have_happened_are_the_same(client: Any) -> None:
    assert set(value_of(client, "AMBIGUOUS")) == {kind.value for kind in AMBIGUOUS}


def test_tightness_is_the_same(client: Any) -> None:
    assert value_of(client, "TIGHTNESS") == {state.value: state.tightness for state in DrainState}


def test_the_closed_sets_of_the_gate_are_the_same(client: Any) -> None:
    assert set(value_of(client, "ROLLBACK_REASONS")) == {reason.value for reason in RollbackReason}
    assert set(value_of(client, "PINS")) == {pin.value for pin in PinReason}
    assert set(value_of(client, "RUNBOOKS")) == {runbook.value for runbook in Runbook}


def test_every_pin_that_the_functions_set_is_a_pin() -> None:
    named = set(re.findall(r"G\.pin\(g, '(\w+)'", lua_source())) | set(
        re.findall(r"G\.close\(q, g, '(\w+)'", lua_source())
    )

    assert len(named) >= 6
    assert named <= {pin.value for pin in PinReason}


def test_every_rollback_reason_that_the_functions_set_is_one() -> None:
    named = set(re.findall(r"G\.roll_back_run\(q, g, '(\w+)'", lua_source()))

    assert len(named) >= 3
    assert named <= {reason.value for reason in RollbackReason}


def test_every_order_and_every_step_move_has_its_code() -> None:
    orders = set(re.findall(r"order == '(\w+)'", lua_source()))
    effects = set(re.findall(r"^function effects\.(\w+)", lua_source(), flags=re.MULTILINE))

    assert orders == {order.value for order in Order}
    assert {"finish" if move is StepMove.END else move.value for move in StepMove} <= effects


def test_the_functions_use_the_keys_that_keys_names_and_no_other() -> None:
    used = set(re.findall(r"\bp \.\. '([^']+)'", lua_source())) - _BUILT
    named = {value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)}
    named -= {keys.DEFAULT_QUEUE}
    of_family = {name for name in used if name not in named and name.startswith(keys.FAMILIES)}

    assert used - of_family == named
    # The longest family that fits counts: `running:cost:` is none of `running:`.
    assert {max((f for f in keys.FAMILIES if name.startswith(f)), key=len) for name in of_family} == set(keys.FAMILIES)


def test_the_lists_of_keys_that_init_and_snapshot_walk_hold_nothing_else(client: Any) -> None:
    named = {value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)}

    assert set(value_of(client, "TRACES")) <= named
    assert tuple(value_of(client, "OLD_TRACES")) == keys.OLD_NAMES
    assert set(value_of(client, "CONTAINERS")) <= named


def test_the_gates_record_has_the_fields_of_the_table(client: Any) -> None:
    fields = value_of(client, "GATE_FIELDS")

    assert len(fields) == len(set(fields))
    assert set(value_of(client, "NUMBERS")) < set(fields)


def names_of(contract: Contract) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(contract.for_redis())
    return body


def test_the_functions_read_only_settings_that_the_contract_stores() -> None:
    stored = names_of(default_settings().contract)
    text = lua_source()
    timings = set(re.findall(r"timings\.(\w+)", text))
    tops = set(re.findall(r"q\.s\.(\w+)", text))
    bounds = set(re.findall(r"bounds\.(\w+)", text))

    assert timings
    assert timings <= set(stored["timings"])
    assert tops <= set(stored)
    assert bounds <= set(stored["thresholds"])
    assert set(stored["thresholds"]) == set(Thresholds.__dataclass_fields__)
