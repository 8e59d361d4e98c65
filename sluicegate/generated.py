"""Generated files: write those that changed, or name those that are out of date."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sluicegate.errors import UsageError


def outdated(files: Mapping[Path, str]) -> tuple[Path, ...]:
    """Return the paths whose content differs from what was rendered, or that are missing."""
    return tuple(path for path, text in files.items() if not path.is_file() or path.read_text("utf-8") != text)


def write(files: Mapping[Path, str]) -> tuple[Path, ...]:
    """Write what is out of date, making folders on the way, and return the paths written.

    Raises UsageError when a place can't be written to.
    """
    changed = outdated(files)
    for path in changed:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{path} can't be written: {error.strerror}.", "Choose a folder that you may write to with --out."
            ) from error
    return changed
