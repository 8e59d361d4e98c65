"""Tell a person the verdict of a torture."""

from __future__ import annotations

from pathlib import Path

from drill.checker.verdict import Verdict, table


def told(folder: Path, verdict: Verdict, kept: str) -> int:
    """Print a verdict that is kept in a file of the folder, and give the exit code."""
    for line in table(verdict):
        print(line)
    print(f"logs and {kept}: {folder}")
    broken = sum(finding.failed for finding in verdict.findings)
    print(f"verdict: {'every promise was kept' if verdict.passed else f'{broken} promises were broken or not proved'}")
    return 0 if verdict.passed else 1
