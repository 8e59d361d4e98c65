"""Is a refusal the same for whoever asks again while it is live, and decided anew only once it has come due?

A refusal that says "come back in r seconds" was decided between the sending and the hearing of its ask, so it comes due
between sent + r and heard + r. An ask that was sent after it was heard and answered before sent + r met it live for
sure; what lies between proves nothing and is left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from drill.checker.finding import Finding, Weight
from drill.checker.logs import Ask, Logs

# Decisions are kept in whole milliseconds, and callers read another clock than the server: the same machine's.
_CLOCK_S = 0.005


def same_while_live(logs: Logs, weight: Weight) -> Finding:
    """Find asks that met a live refusal and were told anything else."""
    looked_at, broken = 0, []
    for refused, again in _met_live(logs):
        looked_at += 1
        told = _difference(refused, again)
        if told:
            broken.append(
                f"{refused.key}: refused {refused.reason} at {refused.heard:.3f}, {told} at {again.heard:.3f}"
            )
    says = "a refusal is answered the same while it is live"
    return Finding("same_while_live", says, looked_at, tuple(broken), weight)


def decided_again_when_due(logs: Logs) -> Finding:
    """Count the asks that came after a refusal was due for sure and were decided anew."""
    renewed = 0
    for asks in _by_key(logs).values():
        last = next((ask for ask in asks if ask.answer == "refused" and ask.retry_after_s is not None), None)
        if last is None or last.retry_after_s is None:
            continue
        due = last.heard + last.retry_after_s + _CLOCK_S
        renewed += any(ask.fresh and ask.sent > due for ask in asks)
    return Finding("decided_again", "keys decided again once their refusal had come due", renewed, (), Weight.FIGURE)


def _met_live(logs: Logs) -> Iterator[tuple[Ask, Ask]]:
    for asks in _by_key(logs).values():
        for refused in (ask for ask in asks if ask.answer == "refused"):
            wait_s = math.inf if refused.retry_after_s is None else refused.retry_after_s
            for again in asks:
                live = again.sent >= refused.heard and again.heard <= refused.sent + wait_s - _CLOCK_S
                if again is not refused and live and again.answer in ("accepted", "refused"):
                    yield refused, again


def _difference(refused: Ask, again: Ask) -> str:
    """Say how the second answer differs from the first, empty where it is the same refusal."""
    if again.answer == "accepted":
        return "accepted"
    if again.reason != refused.reason:
        return f"refused {again.reason}"
    if not again.replayed:
        return "decided anew"
    if (refused.retry_after_s is None) != (again.retry_after_s is None):
        return "told another time to come back"
    if refused.retry_after_s is None or again.retry_after_s is None:
        return ""
    earliest = max(refused.sent + refused.retry_after_s, again.sent + again.retry_after_s)
    latest = min(refused.heard + refused.retry_after_s, again.heard + again.retry_after_s)
    return "told another time to come back" if earliest > latest + _CLOCK_S else ""


def _by_key(logs: Logs) -> dict[str, list[Ask]]:
    grouped: defaultdict[str, list[Ask]] = defaultdict(list)
    for ask in logs.asks:
        if not ask.other:
            grouped[ask.key].append(ask)
    return grouped
