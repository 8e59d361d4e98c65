"""How does each verb act, one look at a time, so that any executor can go on where another stopped?"""

from __future__ import annotations

from automation.steps.approve import approve
from automation.steps.audit import audit
from automation.steps.burn_down import burn_down
from automation.steps.canary import canary
from automation.steps.drain import drain
from automation.steps.fix import fix
from automation.steps.freeze import freeze
from automation.steps.recover import recover
from automation.steps.reopen import reopen
from automation.steps.snapshot import snapshot
from automation.turn import StepRunner
from runbooks.verbs.step import VerbName

STEPS: dict[VerbName, StepRunner] = {
    VerbName.FREEZE: freeze,
    VerbName.SNAPSHOT: snapshot,
    VerbName.DRAIN: drain,
    VerbName.FIX: fix,
    VerbName.RECOVER: recover,
    VerbName.CANARY: canary,
    VerbName.BURN_DOWN: burn_down,
    VerbName.REOPEN: reopen,
    VerbName.AUDIT: audit,
    VerbName.APPROVE: approve,
}
