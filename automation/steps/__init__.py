"""How does each verb act, one look at a time, so that any executor can go on where another stopped?"""

from __future__ import annotations

from collections.abc import Callable

from automation.steps.approve import approve
from automation.steps.audit import audit
from automation.steps.burn_down import burn_down
from automation.steps.canary import canary
from automation.steps.command import command
from automation.steps.drain import drain
from automation.steps.fix import fix
from automation.steps.freeze import freeze
from automation.steps.http import http
from automation.steps.notify import notify
from automation.steps.outside import CallingOutside
from automation.steps.reconcile import Reconciling
from automation.steps.recover import recover
from automation.steps.reject import reject
from automation.steps.reopen import reopen
from automation.steps.set_provider import set_provider
from automation.steps.snapshot import snapshot
from automation.steps.wait_for import wait_for
from automation.turn import StepRunner
from runbooks.verbs.step import VerbName

# All but `reconcile`, which remembers whom it has asked.
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
    VerbName.SET_PROVIDER: set_provider,
    VerbName.HTTP: http,
    VerbName.COMMAND: command,
    VerbName.WAIT_FOR: wait_for,
    VerbName.REJECT: reject,
    VerbName.NOTIFY: notify,
}


def runners(reconciling: Reconciling) -> Callable[[str], StepRunner]:
    """Give who carries out which verb; an installed one is carried out like every call outside."""
    outside = CallingOutside()

    def runner(word: str) -> StepRunner:
        if word == VerbName.RECONCILE:
            return reconciling
        return STEPS[VerbName(word)] if word in set(VerbName) else outside

    return runner
