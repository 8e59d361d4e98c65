"""Run promtool on rules and their unit tests: the generated ones and those written by hand."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rules.generate import RULES_FILE, render_rules, slices
from sluicegate.errors import UsageError
from sluicegate.settings import Settings, default_settings

# Tests by hand speak of the default thresholds, so they always run against the default settings' rules.
HAND_WRITTEN = Path(__file__).resolve().parent / "tests"
_LIMIT_S = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold what promtool said about one file."""

    name: str
    passed: bool
    output: str


def find_promtool() -> str:
    """Return promtool's path.

    Raises UsageError when it is not on the PATH.
    """
    found = shutil.which("promtool")
    if found is None:
        raise UsageError(
            "promtool is not on the PATH, so the rules can't be tested.",
            "Install Prometheus: on Debian it is the package `prometheus`; elsewhere promtool comes in its archive.",
        )
    return found


def run_tests(settings: Settings, *, disturbed: bool = False) -> tuple[Verdict, ...]:
    """Check the rules of these settings, run their generated tests, then the tests written by hand.

    `disturbed` adds the tests in which figures go wrong: they take twice as long as all others together.
    """
    promtool = find_promtool()
    with tempfile.TemporaryDirectory(prefix="sluicegate-rules-") as name:
        generated, by_hand = Path(name) / "generated", Path(name) / "by-hand"
        _lay(generated, {RULES_FILE: render_rules(settings)})
        sliced: list[Path] = []
        for title, files in (*slices(settings), *(slices(settings, disturbed=True) if disturbed else ())):
            _lay(generated / title, files)
            sliced.extend(generated / title / file for file in files if file != RULES_FILE)
        tests = {path.name: path.read_text("utf-8") for path in sorted(HAND_WRITTEN.glob("*.test.yml"))}
        _lay(by_hand, {RULES_FILE: render_rules(default_settings()), **tests})
        return (
            _run(promtool, ("check", "rules"), generated / RULES_FILE),
            *(_run(promtool, ("test", "rules"), file) for file in sliced),
            *(_run(promtool, ("test", "rules"), by_hand / test) for test in tests),
        )


def judge(tests: Path) -> Verdict:
    """Run one file of unit tests; its rules lie beside it."""
    return _run(find_promtool(), ("test", "rules"), tests)


def _lay(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _run(promtool: str, words: Sequence[str], file: Path) -> Verdict:
    name = f"{' '.join(words)} {file.parent.name}/{file.name}"
    try:
        answer = subprocess.run(
            [promtool, *words, str(file)], capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return Verdict(name, False, f"promtool was not done within {_LIMIT_S} s.")
    return Verdict(name, answer.returncode == 0, (answer.stdout + answer.stderr).strip())
