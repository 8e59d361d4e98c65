"""Let a headless Chromium take the picture of a page."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from sluicegate.errors import SluicegateError, UsageError

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_WITHIN_S = 60
_LAST_LINES = 5


def find_chromium() -> Path:
    """Return Chromium's path; raises UsageError that names the Debian package where there is none."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise UsageError(
            "Chromium is not on the PATH, so no picture can be taken.",
            "On Debian: apt-get install --no-install-recommends chromium",
        )
    return Path(found)


def take_picture(html: str, width: int, height: int, out: Path) -> None:
    """Write a page's picture as PNG; raises SluicegateError with Chromium's last words where there is none."""
    chromium = find_chromium()
    with tempfile.TemporaryDirectory(prefix="sluicegate-picture-") as name:
        folder = Path(name)
        page, picture = folder / "page.html", folder / "page.png"
        page.write_text(html, encoding="utf-8")
        said = _run([str(chromium), *_flags(folder, width, height, picture), page.as_uri()])
        if not picture.is_file():
            raise SluicegateError(f"Chromium took no picture; its last words:\n{said}")
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, out)


def _flags(folder: Path, width: int, height: int, picture: Path) -> list[str]:
    flags = [
        "--headless",
        "--disable-gpu",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--hide-scrollbars",
        "--force-color-profile=srgb",
        "--force-device-scale-factor=1",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},{height}",
        f"--screenshot={picture}",
    ]
    # Its sandbox can't be made by root, and the page is our own and loads nothing.
    return [*flags, "--no-sandbox"] if os.geteuid() == 0 else flags


def _run(words: list[str]) -> str:
    try:
        answer = subprocess.run(words, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SluicegateError(f"Chromium took no picture within {_WITHIN_S} s.") from error
    return "\n".join(answer.stderr.splitlines()[-_LAST_LINES:])
