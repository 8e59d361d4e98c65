"""canary: submit harmless jobs in turn through the real workers until enough in a row succeeded."""

from __future__ import annotations

import json

from automation.turn import Done, Failed, Progress, Turn, Wait
from runbooks.gates import canary_gate, overall
from runbooks.verbs.step import VerbName
from runbooks.verdict import CheckResult, Verdict
from sluicegate.run_journal import Phase


async def canary(turn: Turn) -> Progress:
    """Keep one canary on its way, in order round the classes, until green or failed (contract §7.5)."""
    gate = turn.telemetry.gate
    classes = turn.context.contract.canary_classes
    approved = turn.approved_by()
    # Where there are canaries they alone prove the path: no word takes their place.
    if approved is not None and not classes and not gate.green:
        return Done("green", {"approved_by": approved})
    checks = canary_gate(turn.telemetry, turn.context.contract, turn.elapsed_s)
    verdict = overall(checks)
    if verdict is Verdict.FAIL:
        return Failed(VerbName.CANARY, "; ".join(_said(check) for check in checks if check.verdict is Verdict.FAIL))
    if gate.green:
        return Done(detail={"canary_ok_count": gate.canary_ok_count})
    if not classes:
        every_s = turn.context.contract.timings.fix_page_s
        return Wait("no class declares a canary: waits for a named person", every_s, needs_person=True)
    if turn.telemetry.canaries == 0:
        await _submit(turn, classes)
    return Wait(f"{gate.canary_ok_count} of {gate.canaries_required} in a row, {gate.canary_failures} failed")


async def _submit(turn: Turn, classes: tuple[str, ...]) -> None:
    number = len(turn.entries(Phase.PROGRESS))
    name = classes[number % len(classes)]
    payload = json.dumps(turn.context.contract.classes[name].canary, sort_keys=True)
    arguments = {"class": name, "n": number, "payload": payload}
    text = f"canary:{turn.run_id}:{name}:{number} submitted"
    await turn.commit(Phase.PROGRESS, "canary", text=text, arguments=arguments)


def _said(check: CheckResult) -> str:
    return f"{check.name} is {check.value}, bound {check.bound}"
