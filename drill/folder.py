"""The one data folder of a drill: made at its start, removed at its end, or by a later drill when it was killed."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from drill.watchdog import end_survivors, read_stat
from sluicegate.errors import UsageError

PREFIX = "sluicegate-drill-"
KEPT_PREFIX = "sluicegate-kept-"
_NAME = re.compile(rf"{PREFIX}(?P<pid>\d+)-(?P<started>\w+)-\w+")


def started_at(pid: int) -> str:
    """Return a word for when a process started, empty when there is none: pids are used again, this pair is not."""
    if seen := read_stat(pid):
        return "" if seen.state in "ZX" else str(seen.started_ticks)
    if Path("/proc/self").exists():
        return ""
    answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return re.sub(r"\W+", "_", answer.stdout.strip())


def create_folder(root: Path | None = None) -> Path:
    """Make this process's data folder under `root` (default: the system's temporary folder), for its owner alone.

    Raises UsageError when the place can't be written to.
    """
    place = root or Path(tempfile.gettempdir())
    try:
        made = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{started_at(os.getpid())}-", dir=place)
    except OSError as error:
        raise UsageError(
            f"The drill can't make its data folder in {place}: {error.strerror}.",
            "Point TMPDIR at a folder that this user can write to.",
        ) from error
    return Path(made)


def keep_folder(folder: Path) -> Path:
    """Rename a drill's folder so that no later drill takes it for a dead one's; return where it is now."""
    kept = folder.with_name(folder.name.replace(PREFIX, KEPT_PREFIX, 1))
    return folder.rename(kept)


def remove_stale_folders(root: Path | None = None, *, kept_too: bool = False) -> tuple[Path, ...]:
    """Remove the folders of drills whose process is gone, and first end what still runs of them; return what went.

    A folder belongs to a living drill while a process with its pid and its start time lives. Folders of other users
    are left alone. `kept_too` also removes what `keep_folder` kept.
    """
    place = root or Path(tempfile.gettempdir())
    removed = []
    for folder in (*_stale(place), *(_own(place, f"{KEPT_PREFIX}*") if kept_too else ())):
        end_survivors(mark=folder.name, sessions=())
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(folder)
    return tuple(removed)


def _stale(place: Path) -> Iterator[Path]:
    for folder in _own(place, f"{PREFIX}*"):
        match = _NAME.fullmatch(folder.name)
        if match and started_at(int(match["pid"])) != match["started"]:
            yield folder


def _own(place: Path, pattern: str) -> Iterator[Path]:
    """Yield this user's real folders; a link planted in a shared temporary folder is nobody's drill."""
    for entry in sorted(place.glob(pattern)):
        try:
            seen = entry.lstat()
        except FileNotFoundError:
            continue  # a drill that starts at the same moment was faster
        if stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid():
            yield entry
