"""Keep what a file says, as it is now: whoever replaces it restarts nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import structlog

from sluicegate.errors import SettingsError

# Of a file its inode, size and time of change, None where it is not there.
Stamp = tuple[int, int, int] | None
T = TypeVar("T")

_log = structlog.get_logger(__name__)


class KeptFile(Generic[T]):
    """Hold what `read` makes of a file; a change that can't be read leaves the last good value in force.

    Raises SettingsError where the file can't be used at the start.
    """

    def __init__(self, path: Path, read: Callable[[Path], T]) -> None:
        self._path = path
        self._read = read
        self._seen = stamp_of(path)
        self.value = read(path)

    def renew(self) -> bool:
        """Read again if the file has changed since the last look; gives whether another value is in force now."""
        seen = stamp_of(self._path)
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            self.value = self._read(self._path)
        except SettingsError as error:
            _log.warning("file_refused", file=str(self._path), error=str(error), in_force="what it said before")
            return False
        _log.info("file_renewed", file=str(self._path))
        return True


def stamp_of(path: Path) -> Stamp:
    """Give what tells one state of a file from another."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
