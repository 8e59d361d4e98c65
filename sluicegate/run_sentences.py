"""Say in words what a person can do about a live run. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from sluicegate import remedies
from sluicegate.run_journal import WaitsForPerson
from sluicegate.telemetry import RunView

# What a person's word says, by the step that waits for it.
_TRUE_AT = {"fix": "the fault is gone", "canary": "you know that the path works", "approve": "the keys are audited"}


def true_at(step: str) -> str:
    """Give what a person's word at a step says to be true."""
    return _TRUE_AT.get(step, "you have looked")


def run_unblocks(run: RunView, waits: WaitsForPerson | None) -> Iterator[str]:
    """Say how a live run goes on or ends; to open without its proof comes last."""
    last = f"Last, `{remedies.GATE_OPEN_END_RUN}` ends it and opens at once, without canaries."
    if run.state == "rolling_back":
        yield f"Run {run.run_id} rolls back: a running `sluicegate automation serve` finishes its hooks and ends it."
        yield last
        return
    if waits is not None:
        word = f"`{remedies.approve(run.run_id, waits.step)}`"
        yield f"Run {run.run_id} goes on by your word, once {true_at(waits.step)}: {word}."
    else:
        yield f"Run {run.run_id} moves the gate: `sluicegate automation show {run.run_id}` says where it is."
    yield f"`{remedies.abort(run.run_id)}` ends it, closed and pinned."
    yield last
