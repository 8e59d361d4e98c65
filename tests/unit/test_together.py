"""The files that share what is long in the making are kept in one process, each of them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import TOGETHER, Together

TAKES = {
    "explored": r"\bexplored: Explored\b",
    "table": r"\btable: Table\b",
    "built": r"^def built\(",
    "week": r"\bweek: Week\b",
    "degraded": r"\bdegraded: Degraded\b",
}


def test_every_file_that_takes_what_is_long_in_the_making_is_in_its_group(repository: Path) -> None:
    found = {
        path.stem.removeprefix("test_"): group
        for path in (repository / "tests").rglob("test_*.py")
        for group, pattern in TAKES.items()
        if re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert found == TOGETHER


def test_tests_of_a_group_have_one_scope_and_others_each_their_own() -> None:
    scope = Together.__new__(Together)._split_scope
    first, second = "tests/unit/gate/test_liveness.py::test_a[x::y]", "tests/unit/gate/test_processes.py::test_b"
    assert scope(first) == scope(second) == "explored"
    assert scope("tests/unit/test_tables.py::test_a") == "tests/unit/test_tables.py::test_a"
