"""After control data was lost: did the gate stay shut until a named person opened it?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from drill.checker.finding import Finding
from drill.checker.logs import Deed, Logs

_LOST_PIN = "control_data_lost"
_OPENINGS = ("open", "open_end_run")


def stays_shut(logs: Logs) -> Finding:
    """Find readings of an open gate, and jobs admitted, between a loss of control data and a person's opening."""
    looked_at, broken = 0, []
    for loss, opened_at in _losses(logs):
        readings = [look for look in logs.readings if loss.at < look.at < opened_at and look.drain_state]
        looked_at += len(readings)
        broken += [
            f"the gate reads {look.drain_state} at {look.at:.3f}" for look in readings if look.drain_state != "drain"
        ]
        broken += [
            f"{ask.key}: admitted at {ask.heard:.3f}"
            for ask in logs.asks
            if ask.fresh and ask.answer == "accepted" and loss.at < ask.sent and ask.heard < opened_at
        ]
        if readings and not any(look.pin == _LOST_PIN for look in readings):
            broken.append(f"nobody was told of the loss at {loss.at:.3f}: no reading has the pin {_LOST_PIN}")
    says = "after control data was lost the gate reads drain until a person opens it"
    return Finding("stays_shut", says, looked_at, tuple(broken))


def _losses(logs: Logs) -> Iterator[tuple[Deed, float]]:
    """Give each loss of a gate move that had been seen, with when a person opened the gate next."""
    for deed in logs.deeds:
        if deed.lost_gate:
            orders = (other.at for other in logs.deeds if other.what == "order" and other.whom in _OPENINGS)
            yield deed, min((at for at in orders if at > deed.at), default=math.inf)
