"""snapshot: write down everything that is not final, before anything is expired."""

from __future__ import annotations

import asyncio
from pathlib import Path

from automation.turn import Done, Failed, Progress, Turn, Wait
from runbooks.verbs.snapshot import Snapshot
from runbooks.verbs.step import VerbName
from sluicegate.errors import HalfRestored, NeverStill, NoContract, SnapshotBusy
from sluicegate.printable import printable
from sluicegate.snapshot import write_snapshot
from sluicegate.snapshot_file import Written
from sluicegate.store import Store

# Ids in a journal's entry; the others are counted.
_FEW = 5


async def snapshot(turn: Turn) -> Progress:
    """Write the file; written again from the start after a crash, and put in place only when it is whole."""
    path = Path(turn.params(Snapshot).to.resolve(turn.context))
    try:
        written = await asyncio.to_thread(_written, turn.store, path)
    except NeverStill as error:
        return Wait(f"the snapshot is not consistent yet: {error}")
    except SnapshotBusy as error:
        return Wait(f"an executor before this one is not done with it: {error}")
    except (NoContract, HalfRestored) as error:
        return Failed(VerbName.SNAPSHOT, str(error))
    except OSError as error:
        return Failed(VerbName.SNAPSHOT, f"The snapshot {path} cannot be written: {error.strerror}.")
    detail = {"path": str(path), "sha256": written.sha256, "jobs": written.jobs, "refusals": written.refusals}
    if written.left_out:
        detail["left_out"] = len(written.left_out)
        detail["left_out_ids"] = " ".join(map(printable, written.left_out[:_FEW]))
    return Done("snapshot", detail)


def _written(store: Store, path: Path) -> Written:
    """Write the file, and its folder where that is missing: it is named by settings, and a recovery waits for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_snapshot(store, path)
