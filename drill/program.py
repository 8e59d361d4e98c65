"""Find the servers' programs on this machine and ask them for their version."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluicegate.errors import UsageError

_VERSION_WITHIN_S = 10
_VERSION = re.compile(r"(?:version |v=)(?P<version>[0-9][^\s,]*)")


@dataclass(frozen=True)
class Program:
    """Name a program that was found: what it calls itself, its version and where it lies."""

    title: str
    version: str
    path: Path

    def __str__(self) -> str:
        return f"{self.title} {self.version} ({self.path})"


def on_path(names: Sequence[str]) -> Path | None:
    """Return the first of the names that the PATH holds; Debian and upstream name some programs differently."""
    found = (shutil.which(name) for name in names)
    return next((Path(path) for path in found if path), None)


def require(title: str, names: Sequence[str], package: str) -> Program:
    """Return the first program of the names; raise UsageError that names the Debian package when there is none."""
    path = on_path(names)
    if path is None:
        listed = " nor ".join(f"`{name}`" for name in names)
        raise UsageError(
            f"{title} is missing: {'neither ' if len(names) > 1 else ''}{listed} is{'' if len(names) > 1 else ' not'}"
            " on the PATH.",
            f"On Debian: apt-get install --no-install-recommends {package}",
        )
    return Program(title, version_of(path), path)


def version_of(path: Path) -> str:
    """Return the version that a program reports with --version, `unknown` when it says nothing that looks like one."""
    return parse_version(version_text(path))


def version_text(path: Path) -> str:
    """Return all that a program prints for --version; raise UsageError when it can't be run."""
    try:
        answer = subprocess.run(
            [path, "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # older Prometheus programs print their version there
            text=True,
            timeout=_VERSION_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"The program {path} can't be asked for its version: {error}.", "Check that it runs."
        ) from error
    return answer.stdout


def parse_version(text: str) -> str:
    """Return the version in a program's --version text."""
    match = _VERSION.search(text)
    return match["version"] if match else "unknown"
