"""Run a torture from the command line: a signal ends it tidily, and a person is told the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from drill.checker.verdict import Verdict, table
from drill.interrupt import Interrupt, Interrupted
from sluicegate.errors import SluicegateError, UsageError


def tortured(torture: Callable[[Interrupt], tuple[Path, Verdict]], kept: str) -> int:
    """Run a torture, print its verdict, and return the exit code; a signal ends it without a verdict."""
    with Interrupt() as interrupt:
        try:
            folder, verdict = torture(interrupt)
        except Interrupted as signal:
            print(f"interrupted by {signal.number.name}: every process is ended, no verdict")
            return signal.exit_code
        except UsageError:
            raise
        except SluicegateError as failure:
            print(f"FAILED  the torture itself: {failure}")
            return 1
    return told(folder, verdict, kept)


def told(folder: Path, verdict: Verdict, kept: str) -> int:
    """Print a verdict that is kept in a file of the folder, and give the exit code."""
    for line in table(verdict):
        print(line)
    print(f"logs and {kept}: {folder}")
    broken = sum(finding.failed for finding in verdict.findings)
    print(f"verdict: {'every promise was kept' if verdict.passed else f'{broken} promises were broken or not proved'}")
    return 0 if verdict.passed else 1
