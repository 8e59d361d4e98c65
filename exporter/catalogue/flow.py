"""What happened, as totals kept in Redis: they move once a change of state and survive every restart."""

from __future__ import annotations

import re

from exporter.catalogue.records import Read, counter
from exporter.figure import Figure, Sample, counted
from sluicegate import telemetry as names
from sluicegate.admission import RefusalReason
from sluicegate.telemetry import REASON_LABEL, Telemetry

_KEYS = ("counters",)
_REFUSED = "refused:"
# A full class or cost class answers with its own name; anything else that isn't a declared reason is no label.
_LIMIT = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*_limit")
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
RUN_RESULTS = ("succeeded", "rolled_back", "aborted", "superseded", "lost")
RUN_REFUSALS = ("kill_switch", "breaker", "cooldown", "runs_per_hour")
NO_REASON = "none"
OTHER = "other"


def _one(name: str) -> Read:
    """Read one counter, born at 0."""
    return lambda telemetry: [((), telemetry.counters.get(name, 0))]


def _admissions(telemetry: Telemetry) -> list[Sample]:
    counters = telemetry.counters
    refused = dict.fromkeys([*RefusalReason, *(f"{name}_limit" for name in telemetry.classes)], 0)
    for reason, value in _under(_REFUSED, telemetry).items():
        shown = reason if reason in refused or _LIMIT.fullmatch(reason) else OTHER
        refused[shown] = refused.get(shown, 0) + value
    return [
        (("accepted", NO_REASON), counters.get("admitted", 0)),
        (("replayed", NO_REASON), counters.get("replayed", 0)),
        *((("refused", reason), value) for reason, value in refused.items()),
    ]


def _by_name(prefix: str, known: tuple[str, ...]) -> Read:
    """Read the counters of a prefix by the rest of their name: the known ones born at 0, no name as `other`."""

    def read(telemetry: Telemetry) -> list[Sample]:
        shown = dict.fromkeys(known, 0)
        for name, value in _under(prefix, telemetry).items():
            label = name if _NAME.fullmatch(name) else OTHER
            shown[label] = shown.get(label, 0) + value
        return [((label,), value) for label, value in shown.items()]

    return read


def _under(prefix: str, telemetry: Telemetry) -> dict[str, int]:
    """Give the counters whose name starts with the prefix, sorted, without it."""
    found = sorted(name for name in telemetry.counters if name.startswith(prefix))
    return {name.removeprefix(prefix): telemetry.counters[name] for name in found}


def _canaries(telemetry: Telemetry) -> list[Sample]:
    return counted(telemetry.counters, {"ok": "canaries_ok", "failed": "canaries_failed"})


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
        _one("lease_expired"),
        unit="leases",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_requeues_total",
        "Jobs put back to the head by a drain; that uses no retry.",
        _one("requeued"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_retries_total",
        "Jobs delayed for another attempt after an answer or a timeout.",
        _one("retried"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_unknown_total",
        "Jobs that became unknown: a side effect may have happened and nobody saw.",
        _one("unknown"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        names.UNKNOWN_LEFT_TOTAL,
        "Jobs that left unknown, whatever let them.",
        _one("unknown_left"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        names.UNKNOWN_RECONCILED_TOTAL,
        "Reconcile records for unknown jobs: the only way out. Fewer than left it means that one went on unproven.",
        _one("unknown_reconciled"),
        unit="records",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_blocked_total",
        "Jobs that were blocked: only a named person moves them.",
        _one("blocked"),
        unit="jobs",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_stale_writes_total",
        "Writes refused for an old fence: suspected duplicates, which roll nothing back.",
        _one("stale_writes"),
        unit="writes",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_duplicate_side_effects_total",
        "Confirmed duplicate side effects.",
        _one("duplicates_confirmed"),
        unit="duplicates",
        keys=_KEYS,
    ),
    counter(
        "sluicegate_canaries_total",
        "Canaries that ended, by result: ok or failed.",
        _canaries,
        unit="canaries",
        keys=_KEYS,
        labels=("result",),
    ),
    counter(
        "sluicegate_runs_total",
        "Runs of runbooks that ended, by result.",
        _by_name("runs:", RUN_RESULTS),
        unit="runs",
        keys=_KEYS,
        labels=("result",),
    ),
    counter(
        "sluicegate_runs_refused_total",
        "Runs that were not opened, by what forbade it; a named person is bound by none of it.",
        _by_name("runs_refused:", RUN_REFUSALS),
        unit="runs",
        keys=_KEYS,
        labels=(REASON_LABEL,),
    ),
    counter(
        "sluicegate_fenced_steps_total",
        "Steps of a run that were refused for an old fence: somebody else owns the run, or it has ended.",
        _one("fenced_steps"),
        unit="steps",
        keys=_KEYS,
    ),
    counter(
        names.REJECT_RETURNS_TOTAL,
        "Returns to reject_new soon after leaving it; each doubles the wait before the next opening.",
        _one("reject_returns"),
        unit="returns",
        keys=_KEYS,
    ),
)
