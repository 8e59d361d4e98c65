"""The one table of verbs: a word in the file, and the class that reads and describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runbooks.verbs.approve import Approve
from runbooks.verbs.audit import Audit
from runbooks.verbs.burn_down import BurnDown
from runbooks.verbs.canary import Canary
from runbooks.verbs.drain import Drain
from runbooks.verbs.fix import Fix
from runbooks.verbs.freeze import Freeze
from runbooks.verbs.recover import Recover
from runbooks.verbs.reopen import Reopen
from runbooks.verbs.snapshot import Snapshot
from runbooks.verbs.step import StepParams, VerbName
from runbooks.where import Where

VERBS: dict[VerbName, Callable[[Mapping[str, Any], Where], StepParams]] = {
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
}
