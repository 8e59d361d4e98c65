"""What happened, as totals kept in Redis: they move once a change of state and survive every restart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from exporter.catalogue.records import Read, counter, named_totals, total, totals
from exporter.figure import Figure, Sample
from sluicegate import telemetry as names
from sluicegate.admission import RefusalReason
from sluicegate.run_steps import StepResult, VerbName
from sluicegate.telemetry import REASON_LABEL, RESULT_LABEL, STEP_LABEL, Telemetry

_KEYS = ("counters",)
_REFUSED = "refused:"
# A full class or cost class answers with its own name. One that is declared no more is gone from the page, as it is.
_LIMIT = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*_limit")
RUN_RESULTS = ("succeeded", "failed", "rolled_back", "rolled_back_degraded", "aborted", "superseded", "lost")
RUN_REFUSALS = ("kill_switch", "breaker", "cooldown", "runs_per_hour", "concurrent_runs", "weak_server", "too_many")
NO_REASON = "none"
OTHER = "other"


@lru_cache(maxsize=64)
def _known_refusals(limited: tuple[str, ...]) -> Mapping[tuple[str, ...], str]:
    """Give the labels of the refusals that a contract with these classes and cost classes knows, and their counters."""
    reasons = dict.fromkeys([*map(str, RefusalReason), *(f"{name}_limit" for name in limited)])
    return {("refused", reason): _REFUSED + reason for reason in reasons}


def _admissions(telemetry: Telemetry) -> list[Sample]:
    known = _known_refusals((*telemetry.classes, *telemetry.cost_classes))
    strange = _others(_REFUSED, set(known.values()), telemetry)
    return [
        (("accepted", NO_REASON), telemetry.counter("admitted")),
        (("replayed", NO_REASON), telemetry.counter("replayed")),
        *zip(known, telemetry.totals(known.values()), strict=True),
        *((("refused", OTHER), count) for count in strange if count),
    ]


def _by_name(prefix: str, known: tuple[str, ...]) -> Read:
    """Read the counters of a prefix by the rest of their name: the known ones born at 0, all others as `other`."""
    declared: Mapping[tuple[str, ...], str] = {(name,): prefix + name for name in known}
    counters = set(declared.values())
    read_declared = named_totals(declared)

    def read(telemetry: Telemetry) -> list[Sample]:
        strange = _others(prefix, counters, telemetry)
        return [*read_declared(telemetry), *(((OTHER,), count) for count in strange if count)]

    return read


def _others(prefix: str, known: set[str], telemetry: Telemetry) -> list[int]:
    """Sum the counters of a prefix whose name no declaration has: a name that anybody could write is no label."""
    strange = [name for name in telemetry.counters if name.startswith(prefix) and name not in known]
    return [sum(telemetry.counters[name] for name in strange if not _LIMIT.fullmatch(name.removeprefix(prefix)))]


def _milliseconds(prefix: str, known: Iterable[str]) -> Read:
    """Read totals of ms as seconds, by the rest of their name."""
    read_ms = named_totals({(str(name),): prefix + name for name in known})
    return lambda telemetry: [(labels, None if ms is None else ms / 1000) for labels, ms in read_ms(telemetry)]


_STEPS: Mapping[tuple[str, ...], str] = {
    (str(verb), str(result)): f"steps:{verb}:{result}" for verb in VerbName for result in StepResult
}


FLOW: tuple[Figure[Telemetry], ...] = (
    counter(
        "sluicegate_admissions_total",
        "Admission decisions: accepted, refused with the reason, replayed (the same key asked again).",
        _admissions,
        unit="decisions",
        keys=_KEYS,
        labels=("outcome", REASON_LABEL),
    ),
    counter(
        "sluicegate_lease_expiries_total",
        "Leases that ran out with their job still running: the job became unknown, or blocked after too many losses.",
        total("lease_expired"),
        unit="leases",
        keys=_KEYS,
    ),
    counter(
        names.REQUEUES_TOTAL,
        "Jobs put back to the head by a drain; that uses no retry.",
        total("requeued"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_retries_total",
        "Jobs delayed for another attempt after an answer or a timeout.",
        total("retried"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_unknown_total",
        "Jobs that became unknown: a side effect may have happened and nobody saw.",
        total("unknown"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        names.UNKNOWN_LEFT_TOTAL,
        "Jobs that left unknown, whatever let them.",
        total("unknown_left"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        names.UNKNOWN_RECONCILED_TOTAL,
        "Reconcile records for unknown jobs: the only way out. Fewer than left it means that one went on unproven.",
        total("unknown_reconciled"),
        unit="records",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_blocked_total",
        "Jobs that were blocked: only a named person moves them.",
        total("blocked"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_stale_writes_total",
        "Writes refused for an old fence: suspected duplicates, which roll nothing back.",
        total("stale_writes"),
        unit="writes",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_duplicate_side_effects_total",
        "Confirmed duplicate side effects.",
        total("duplicates_confirmed"),
        unit="duplicates",
        keys=_KEYS,
    ),
    counter(
        names.CANARIES_TOTAL,
        "Canaries that ended, by result: ok or failed.",
        totals({"ok": "canaries_ok", "failed": "canaries_failed"}),
        unit="canaries",
        keys=_KEYS,
        labels=(RESULT_LABEL,),
    ),
    counter(
        names.RUNS_TOTAL,
        "Runs of runbooks that ended, by result.",
        _by_name("runs:", RUN_RESULTS),
        unit="runs",
        keys=_KEYS,
        labels=(RESULT_LABEL,),
    ),
    counter(
        names.RUN_SECONDS_TOTAL,
        "Time that the runs which ended had taken, by their result: divided by sluicegate_runs_total, their mean.",
        _milliseconds("run_ms:", RUN_RESULTS),
        unit="seconds",
        keys=_KEYS,
        labels=(RESULT_LABEL,),
    ),
    counter(
        names.STEPS_TOTAL,
        "Steps of runs that ended, by verb and result: done, rolled_back, interrupted (the run ended in it otherwise).",
        named_totals(_STEPS),
        unit="steps",
        keys=_KEYS,
        labels=(STEP_LABEL, RESULT_LABEL),
    ),
    counter(
        names.STEP_SECONDS_TOTAL,
        "Time that the steps which ended had taken, by verb: divided by sluicegate_steps_total, their mean.",
        _milliseconds("step_ms:", tuple(VerbName)),
        unit="seconds",
        keys=_KEYS,
        labels=(STEP_LABEL,),
    ),
    counter(
        names.RUNS_REFUSED_TOTAL,
        "Runs that were not opened, by what forbade it; a named person is bound by none of it.",
        _by_name("runs_refused:", RUN_REFUSALS),
        unit="runs",
        keys=_KEYS,
        labels=(REASON_LABEL,),
    ),
    counter(
        "sluicegate_fenced_steps_total",
        "Steps of a run that were refused for an old fence: somebody else owns the run, or it has ended.",
        total("fenced_steps"),
        unit="steps",
        keys=_KEYS,
    ),
    counter(
        names.REJECT_RETURNS_TOTAL,
        "Returns to reject_new soon after leaving it; each doubles the wait before the next opening.",
        total("reject_returns"),
        unit="returns",
        keys=_KEYS,
    ),
)
