"""Remove what drills left: data folders of killed ones, and those that were kept on request."""

from __future__ import annotations

from pathlib import Path

from drill.folder import remove_stale_folders


def clean_folders(root: Path | None = None) -> tuple[Path, ...]:
    """End what still runs of dead drills, remove their folders and the kept ones, and return what went.

    A drill that is running keeps its folder.
    """
    return remove_stale_folders(root, kept_too=True)
