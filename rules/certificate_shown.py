"""Show latency certificates: as a table for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rules.certificate import LEAST_LEFT, Certificate, Refusal
from rules.promql import number
from sluicegate.settings import Settings
from sluicegate.tables import table_lines, terminal_width


def certificate_table(settings: Settings, certificates: Sequence[Certificate]) -> Iterator[str]:
    """Give a line a page: its worst case, its terms, and what is left of every class's deadline."""
    classes = {name: declared.deadline_s for name, declared in settings.contract.classes.items()}
    head = ("page", "worst case", "made of", *(f"left of {name}'s {number(s)} s" for name, s in classes.items()))
    rows = [(*_said(one), *(_left(one, deadline_s) for deadline_s in classes.values())) for one in certificates]
    yield from table_lines(head, rows, terminal_width())


def _said(certificate: Certificate) -> tuple[str, str, str]:
    terms = ", ".join(f"{term.name} {number(term.seconds)}" for term in certificate.terms if term.seconds)
    return certificate.alert.name.value, f"{number(certificate.worst_s)} s", terms


def _left(certificate: Certificate, deadline_s: float) -> str:
    if certificate.alert.waits_by_design:
        return f"not held against it: {certificate.alert.waits_by_design}"
    return f"{certificate.left(deadline_s):.0%}"


def certificate_json(
    settings: Settings, certificates: Sequence[Certificate], refused: Sequence[Refusal]
) -> Iterator[str]:
    """Give the same as one JSON document, with the sentences of what is refused."""
    classes = settings.contract.classes
    body = {
        "queue": settings.queue,
        "least_left": LEAST_LEFT,
        "pages": [
            {
                "alert": one.alert.name.value,
                "worst_s": one.worst_s,
                "terms": [{"name": t.name, "seconds": t.seconds, "setting": t.setting or None} for t in one.terms],
                "waits_by_design": one.alert.waits_by_design or None,
                "left": {name: round(one.left(declared.deadline_s), 4) for name, declared in classes.items()},
            }
            for one in certificates
        ],
        "refused": [refusal.sentence for refusal in refused],
    }
    yield json.dumps(body, indent=2, ensure_ascii=False)
