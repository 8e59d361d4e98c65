"""How what an alert reads can go wrong while the queue itself gets neither better nor worse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rules.cases import Phase, Signal, Situation
from rules.exporters import FIRST, TWIN, Exporters

_MOVED, _STRANGER = "exporter-4:9108", "exporter-5:9108"
_STRANGER_S_JOB = "renamed"
# A restart costs so many scrapes, or all of a shorter time.
_GAP = 2


class Disturbance(StrEnum):
    """Name what goes wrong; the comment says what Prometheus sees of it."""

    NAN = "figures that are no numbers"  # every series goes on as NaN
    EMPTY = "an empty page"  # every series ends, and is marked stale
    STALE = "figures that come no more"  # every series ends unmarked: the last value stands for five minutes
    FROZEN = "a page that stands still"  # every series repeats itself, the reading's own time too
    RESTARTED = "an exporter that restarts"  # a gap, then another instance, and counters that begin at 0
    DUPLICATED = "a second exporter"  # the same series twice
    RELABELLED = "another job's name"  # the same series under labels that no rule selects


# What an exporter's figures say nothing of any more: it must be told.
BLINDING = frozenset(
    {Disturbance.NAN, Disturbance.EMPTY, Disturbance.STALE, Disturbance.FROZEN, Disturbance.RELABELLED}
)


@dataclass(frozen=True, slots=True)
class Stage:
    """Hold a situation that some exporters show for a number of samples."""

    situation: Situation
    samples: int
    shown_by: tuple[str, ...] = (FIRST,)
    is_noticed: bool = True


def disturb(kind: Disturbance, situation: Situation, at_s: float, samples: int, interval_s: float) -> tuple[Stage, ...]:
    """Give the stages of a disturbance that begins at a time and lasts for a number of samples."""
    match kind:
        case Disturbance.NAN:
            return (Stage(_each(situation, Signal(math.nan)), samples),)
        case Disturbance.EMPTY:
            return (Stage(situation, samples, ()),)
        case Disturbance.STALE:
            return (Stage(situation, samples, (), is_noticed=False),)
        case Disturbance.FROZEN:
            return (Stage(_frozen(situation, at_s - interval_s), samples),)
        case Disturbance.RESTARTED:
            back_s = at_s + _GAP * interval_s
            reset = {key: _from_nothing(key, signal, back_s) for key, signal in situation.items()}
            stages = (Stage(situation, min(_GAP, samples), ()), Stage(reset, samples - _GAP, (_MOVED,)))
            return tuple(stage for stage in stages if stage.samples > 0)
        case Disturbance.DUPLICATED:
            return (Stage(situation, samples, (FIRST, TWIN)),)
        case Disturbance.RELABELLED:
            return (Stage(situation, samples, (_STRANGER,)),)


def spell_stages(exporters: Exporters, stages: tuple[Stage, ...]) -> dict[str, str]:
    """Spell the series of every exporter that shows any of the stages."""
    series: dict[str, str] = {}
    for instance in dict.fromkeys(name for stage in stages for name in stage.shown_by):
        phases = tuple(
            Phase(stage.situation, stage.samples, instance in stage.shown_by, stage.is_noticed) for stage in stages
        )
        series |= exporters.alone(phases, instance, _STRANGER_S_JOB if instance == _STRANGER else "")
    return series


def _each(situation: Situation, other: Signal) -> Mapping[str, Signal | None]:
    return {key: None if signal is None else other for key, signal in situation.items()}


def _frozen(situation: Situation, at_s: float) -> Mapping[str, Signal | None]:
    return {key: None if signal is None else signal.held(at_s) for key, signal in situation.items()}


def _from_nothing(key: str, signal: Signal | None, at_s: float) -> Signal | None:
    metric, _, _ = key.partition("{")
    if signal is None or not metric.endswith("_total"):
        return signal
    return Signal(-signal.slope_per_s * at_s, signal.slope_per_s)
