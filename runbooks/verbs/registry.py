"""The one table of verbs: a word in the file, and the class that reads and describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runbooks.verbs.approve import Approve
from runbooks.verbs.audit import Audit
from runbooks.verbs.burn_down import BurnDown
from runbooks.verbs.canary import Canary
from runbooks.verbs.command import Command
from runbooks.verbs.drain import Drain
from runbooks.verbs.fix import Fix
from runbooks.verbs.freeze import Freeze
from runbooks.verbs.http import Http
from runbooks.verbs.notify import Notify
from runbooks.verbs.outside import found, reader
from runbooks.verbs.reconcile import Reconcile
from runbooks.verbs.recover import Recover
from runbooks.verbs.reject import Reject
from runbooks.verbs.reopen import Reopen
from runbooks.verbs.set_provider import SetProvider
from runbooks.verbs.snapshot import Snapshot
from runbooks.verbs.step import StepParams, VerbName
from runbooks.verbs.wait_for import WaitFor
from runbooks.where import Where

Read = Callable[[Mapping[str, Any], Where], StepParams]

VERBS: dict[VerbName, Read] = {
    VerbName.FREEZE: Freeze.read,
    VerbName.SNAPSHOT: Snapshot.read,
    VerbName.DRAIN: Drain.read,
    VerbName.FIX: Fix.read,
    VerbName.RECOVER: Recover.read,
    VerbName.CANARY: Canary.read,
    VerbName.BURN_DOWN: BurnDown.read,
    VerbName.REOPEN: Reopen.read,
    VerbName.AUDIT: Audit.read,
    VerbName.APPROVE: Approve.read,
    VerbName.SET_PROVIDER: SetProvider.read,
    VerbName.HTTP: Http.read,
    VerbName.COMMAND: Command.read,
    VerbName.WAIT_FOR: WaitFor.read,
    VerbName.REJECT: Reject.read,
    VerbName.RECONCILE: Reconcile.read,
    VerbName.NOTIFY: Notify.read,
}


def reader_of(word: str) -> Read:
    """Give what reads a step of this verb, built in or installed; the schema has let no other word through."""
    if word in set(VerbName):
        return VERBS[VerbName(word)]
    return reader(word, found()[word])
