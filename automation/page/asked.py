"""Say what is asked of the person on call, most urgent first, each with the deeds that answer it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from automation.page.deeds import Deed, Offer, Target
from automation.page.reading import Reading
from automation.page.words import clock
from sluicegate.gate import DrainState, PinReason
from sluicegate.gate import Runbook as LockHolder
from sluicegate.gate_sentences import unblocks
from sluicegate.run_journal import WaitsForPerson, waits_of
from sluicegate.run_sentences import true_at
from sluicegate.telemetry import Telemetry

_LOST = frozenset({PinReason.UNINITIALISED.value, PinReason.CONTROL_DATA_LOST.value})


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for one thing: a sentence, what explains it, and the deeds; `urgent` where nothing goes on without it.

    `key` stays the same as long as the same is asked, whatever its sentence counts.
    """

    key: str
    sentence: str
    more: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    urgent: bool = False
    link: str = ""


def asked(reading: Reading) -> tuple[Ask, ...]:
    """Give everything that is asked; empty where nothing is."""
    return tuple(_asked(reading))


def _asked(reading: Reading) -> Iterator[Ask]:
    telemetry = reading.telemetry
    gate = telemetry.gate
    waits = waits_of(reading.history)
    held = reading.history.run if reading.history is not None and reading.history.run.held else None
    if gate.duplicates_unacknowledged:
        yield Ask(
            "duplicates",
            f"Confirmed duplicate side effects: {gate.duplicates_unacknowledged}. Audit their keys.",
            offers=(Offer(Deed.ACKNOWLEDGE, urgent=True),),
            urgent=True,
        )
    if held is not None:
        yield Ask(
            "held",
            f"The run is held until {clock(held.held_until_ms)}; then it rolls back, unless somebody lets it go on.",
            (f"Run {held.run_id}, held by {held.held_by}.",),
            (
                Offer(Deed.RESUME, Target(run=held.run_id), urgent=True),
                *([] if waits is not None else [Offer(Deed.ABORT, Target(run=held.run_id), about=held.run_id)]),
            ),
            urgent=True,
        )
    if waits is not None and gate.run is not None:
        yield _waits(gate.run.run_id, waits)
    elif gate.run is None:
        closed = tuple(unblocks(telemetry, reading.history))
        if closed or gate.pin is not None:
            urgent = bool(closed) and gate.pin is not None
            yield Ask("closed", _closed_said(telemetry), closed, tuple(_ways_out(telemetry)), urgent=urgent)
    for beside in reading.besides:
        if (there := waits_of(beside)) is not None:
            yield _waits(beside.run.run_id, there)
    if telemetry.unknown:
        yield Ask("unknown", f"{_jobs(telemetry.unknown)} unknown: nobody saw the end.", link="jobs")
    if telemetry.blocked:
        yield Ask("blocked", f"{_jobs(telemetry.blocked)} blocked: a person decides.", link="jobs", urgent=True)


def _waits(run: str, waits: WaitsForPerson) -> Ask:
    word = Offer(
        Deed.APPROVE, Target(run=run, step=waits.step), f"Approve step {waits.step}", f"run {run}", urgent=True
    )
    return Ask(
        f"waits {run}",
        f"At step {waits.step} the run waits for you: approve it once {true_at(waits.step)}.",
        (f"Run {run}: {waits.why}.",),
        (word, Offer(Deed.ABORT, Target(run=run), about=run)),
        urgent=True,
    )


def _closed_said(telemetry: Telemetry) -> str:
    gate = telemetry.gate
    if gate.pin is not None:
        if gate.drain_state == DrainState.ADMIT and gate.admission_ratio == 1:
            return f"The gate is pinned ({gate.pin}): it stays open, and no alert opens a run."
        return f"The gate is pinned ({gate.pin}): only a named person lets it go on."
    if gate.drain_state == DrainState.ADMIT:
        return "The gate is open, but not everything is admitted."
    return "The gate is closed, and goes on by itself."


def _ways_out(telemetry: Telemetry) -> Iterator[Offer]:
    gate = telemetry.gate
    if gate.pin in _LOST or gate.duplicates_unacknowledged:
        return
    if gate.drain_state == DrainState.DRAIN:
        yield Offer(Deed.RUN, Target(runbook=LockHolder.DRAIN_AND_RECOVER), urgent=True)
    if gate.pin is not None:
        yield Offer(Deed.RELEASE)


def _jobs(number: int) -> str:
    return "1 job is" if number == 1 else f"{number} jobs are"
