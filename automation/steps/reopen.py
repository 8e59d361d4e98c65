"""reopen: open the gate once its checks pass together, then raise the share in steps and end the run."""

from __future__ import annotations

from automation.turn import Ended, Failed, Progress, Turn, Wait
from runbooks.gates import overall, reopen_gate
from runbooks.verbs.step import VerbName
from runbooks.verdict import Verdict
from sluicegate.run_journal import Phase
from sluicegate.telemetry import GateView


async def reopen(turn: Turn) -> Progress:
    """Ask the gate until its time is up; the function checks the same figures again as it opens (contract §7.7)."""
    gate = turn.telemetry.gate
    if gate.ramp_percent is None:
        return await _open(turn)
    return await _raise(turn, gate)


async def _open(turn: Turn) -> Progress:
    checks = reopen_gate(turn.telemetry, turn.context.contract)
    verdict = overall(checks)
    detail = {check.name: {"value": check.value, "bound": check.bound, "verdict": check.verdict} for check in checks}
    if verdict is Verdict.PASS:
        answer = await turn.commit(Phase.OPENED, "reopen", text="all checks passed", detail=detail)
        if answer.answer == "moved":
            return Wait("the gate is open, the ramp goes on")
    if turn.elapsed_s >= turn.context.contract.timings.gate_timeout_s:
        missed = [f"{check.name} {check.verdict}" for check in checks if check.verdict is not Verdict.PASS]
        return Failed(VerbName.REOPEN, f"the gate did not pass in time: {', '.join(missed) or 'refused at the move'}")
    return Wait(f"the gate says {verdict}")


async def _raise(turn: Turn, gate: GateView) -> Progress:
    if turn.telemetry.at_ms < gate.limit_at_ms:
        return Wait(f"ramp {gate.ramp_percent} %")
    last = turn.context.contract.ramp_percents[-1]
    if gate.ramp_percent is not None and gate.ramp_percent < last:
        await turn.commit(Phase.PROGRESS, "ramp", text=f"past {gate.ramp_percent} %")
        return Wait("the next share is admitted")
    # The run ends with this move: nothing is journaled after it.
    answer = await turn.commit(Phase.DONE, "ramp_end")
    return Ended() if answer.answer == "moved" else Wait("the last share is not held long enough yet")
