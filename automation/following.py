"""Follow a run's journal from outside, line by line, until the run has ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from automation.sentences import entry_line, run_row
from sluicegate.errors import StoreUnavailable
from sluicegate.store import Store

_LOOK_EVERY_S = 0.3


def follow(
    store: Store, run_id: str | None, say: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> str | None:
    """Say each new entry of a run's journal, the newest run's without an id; gives the state it ended in, or None.

    A server that goes away is waited for, and that is said once; raises StoreUnavailable where it never answered.
    """
    seen, row, away, answered = 0, "", False, False
    while True:
        try:
            if run_id is None:
                newest = store.runs(1)
                run_id = newest[0].run_id if newest else None
            history = store.run(run_id) if run_id is not None else None
            answered = True
        except StoreUnavailable as error:
            if not answered:
                raise
            if not away:
                say(f"the server does not answer: {error}")
            away = True
            sleep(_LOOK_EVERY_S)
            continue
        away = False
        if history is None:
            return None
        if (now := run_row(history.run)) != row:
            row = now
            say(row)
        for entry in history.journal[seen:]:
            say(entry_line(entry))
        seen = len(history.journal)
        if not history.run.live:
            return history.run.state
        sleep(_LOOK_EVERY_S)
