"""What can a person do on the page? Each deed with its address, its words and the role that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, urlencode

from sluicegate.gate_events import Order
from sluicegate.reconcile import Verdict
from sluicegate.web.roles import Role

PATH = "/do"


class Deed(StrEnum):
    """Name what a person can do; the comment says what it is done to."""

    HOLD = "hold"  # the gate
    REJECT = "reject"  # the gate
    DRAIN = "drain"  # the gate
    RELEASE = "release"  # the gate's pin
    ACKNOWLEDGE = "acknowledge"  # the confirmed duplicates
    RUN = "run"  # a runbook
    APPROVE = "approve"  # a step of a run
    HOLD_RUN = "hold-run"  # a run
    RESUME = "resume"  # a run that is held
    ABORT = "abort"  # a run
    RECONCILE = "reconcile"  # an unknown job
    RETRY = "retry"  # an unknown or a blocked job
    FAIL = "fail"  # an unknown or a blocked job
    SUCCEED = "succeed"  # an unknown or a blocked job

    @property
    def role(self) -> Role:
        """Give what it takes: to operate is to close, to end, to ask; to approve is to let something go on."""
        return Role.OPERATE if self in _OPERATED else Role.APPROVE

    @property
    def order(self) -> Order | None:
        """Give the order on the gate that it is, None where it is another kind of deed."""
        return _ORDERS.get(self)

    @property
    def verdict(self) -> Verdict | None:
        """Give what it says of a job, None where it says nothing of one."""
        return _VERDICTS.get(self)

    @property
    def tightens(self) -> bool:
        """Say whether it closes something: then it fails on no comparison with what its page showed."""
        return self in (Deed.HOLD, Deed.REJECT, Deed.DRAIN)


_OPERATED = frozenset({Deed.HOLD, Deed.REJECT, Deed.DRAIN, Deed.RUN, Deed.HOLD_RUN, Deed.ABORT, Deed.RECONCILE})
_ORDERS = {
    Deed.HOLD: Order.HOLD,
    Deed.REJECT: Order.REJECT,
    Deed.DRAIN: Order.DRAIN,
    Deed.RELEASE: Order.RELEASE,
    Deed.ACKNOWLEDGE: Order.ACKNOWLEDGE,
}
_VERDICTS = {Deed.RETRY: Verdict.RETRY, Deed.FAIL: Verdict.FAILED, Deed.SUCCEED: Verdict.SUCCEEDED}


@dataclass(frozen=True, slots=True)
class Target:
    """Name what a deed is done to; empty where the deed has no such part."""

    run: str = ""
    step: str = ""
    job: str = ""
    runbook: str = ""

    def fields(self) -> dict[str, str]:
        """Give the parts that are named."""
        parts = {"run": self.run, "step": self.step, "job": self.job, "runbook": self.runbook}
        return {name: value for name, value in parts.items() if value}


@dataclass(frozen=True, slots=True)
class Offer:
    """Offer a deed: what its button says, and what to a screen reader makes it one of its kind."""

    deed: Deed
    target: Target = Target()
    label: str = ""
    about: str = ""
    urgent: bool = False

    @property
    def text(self) -> str:
        return self.label or LABELS[self.deed]

    @property
    def address(self) -> str:
        """Give the address of its page of confirmation."""
        query = urlencode(self.target.fields(), quote_via=quote)
        return f"{PATH}/{self.deed}" + (f"?{query}" if query else "")

    @property
    def anchor(self) -> str:
        """Give an id that stays the same from one rendering to the next, so that the focus can."""
        return "-".join(("do", self.deed.value, *self.target.fields().values()))


LABELS = {
    Deed.HOLD: "Hold the gate",
    Deed.REJECT: "Reject new jobs",
    Deed.DRAIN: "Drain now",
    Deed.RELEASE: "Release the pin",
    Deed.ACKNOWLEDGE: "Acknowledge the duplicates",
    Deed.RUN: "Start the recovery",
    Deed.APPROVE: "Approve the step",
    Deed.HOLD_RUN: "Hold the run",
    Deed.RESUME: "Let the run go on",
    Deed.ABORT: "Abort the run",
    Deed.RECONCILE: "Ask what became of it",
    Deed.RETRY: "Run it again",
    Deed.FAIL: "End it as failed",
    Deed.SUCCEED: "It was done",
}
