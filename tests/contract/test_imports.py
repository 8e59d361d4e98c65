"""Imports go down only, siblings never import each other, and only the store imports redis."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOTS = ("sluicegate", "exporter", "rules", "runbooks", "automation", "dashboards", "drill")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the check in a folder that holds pyproject.toml and the packages."""
    return subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def copy(repository: Path, tmp_path: Path) -> Path:
    """Return a copy of the packages and their contracts into which a violation can be planted."""
    shutil.copy(repository / "pyproject.toml", tmp_path)
    for name in ROOTS:
        shutil.copytree(repository / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_repository_keeps_the_import_contracts(repository: Path) -> None:
    result = lint_imports(repository)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize(
    ("importer", "imported", "broken"),
    [
        ("sluicegate", "exporter", "imports go down only"),
        ("rules", "dashboards", "imports go down only"),
        ("exporter", "automation", "imports go down only"),
        ("automation", "drill", "imports go down only"),
        ("sluicegate", "redis", "only the store and its connections import redis"),
        ("automation", "redis.asyncio", "only the store and its connections import redis"),
        ("drill/checker", "sluicegate.job", "the checker of logs knows nothing of what it judges"),
        ("drill/checker", "drill.effects", "the checker of logs knows nothing of what it judges"),
    ],
)
def test_a_planted_violation_is_refused(copy: Path, importer: str, imported: str, broken: str) -> None:
    (copy / importer / "planted.py").write_text(f"import {imported}\n")

    result = lint_imports(copy)

    assert result.returncode == 1, result.stdout + result.stderr
    assert "1 broken" in result.stdout
    assert f"{importer.replace('/', '.')}.planted" in result.stdout
    broken_contracts = [line for line in result.stdout.splitlines() if " BROKEN" in line]
    assert [line for line in broken_contracts if line.startswith(broken)], result.stdout


def test_the_store_may_import_redis_and_nobody_else_may_through_a_type_check(copy: Path) -> None:
    (copy / "rules" / "planted.py").write_text(
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import redis\n"
    )
    result = lint_imports(copy)
    assert result.returncode == 1
    assert "rules.planted" in result.stdout
