"""Make an environment for each peer, once for each set of pins, in a folder that git ignores."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".bench-cache" / "peers"
_WITHIN_S = 300


class NotInstalled(Exception):
    """Say why pip did not make an environment."""


def environment(name: str, requirements: Sequence[str]) -> Path:
    """Give the folder of the peer's environment; makes it anew where there is none of these pins."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder, stamp = CACHE / name, CACHE / name / "pins"
    wanted = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(folder))
            _run(str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *requirements)
            stamp.write_text(wanted, encoding="utf-8")
    return folder


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    if done.returncode != 0:
        raise NotInstalled(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
