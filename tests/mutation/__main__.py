"""Run a campaign from the command line; exit 1 where a survivor has no reason or too few are killed."""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.campaign import Campaign
from tests.mutation.choosing import MOST_S, PIECES
from tests.mutation.mutants import Mutant
from tests.mutation.reasons import Reasons
from tests.mutation.report import Fate, Report
from tests.mutation.sources import FOLDER, Sources

# Git ignores this folder.
RESULTS = Path("mutation-results")


def main(words: Sequence[str] | None = None) -> int:
    """Try what was asked for, print the report, and write it."""
    asked = _parser().parse_args(words)
    sources = Sources.read()
    mutants = chosen(sources.mutants, asked)
    reasons = Reasons.read()
    campaign = Campaign(
        sources, mutants, asked.results, asked.processes, asked.bound, goes_on=asked.go_on, reasons=reasons
    )
    tests = asked.tests if asked.no_pieces else [PIECES, *asked.tests]
    code = pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-m", "not slow", *tests], plugins=[campaign])
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} or len(campaign.outcomes) < len(mutants):
        print(f"mutation: the campaign ended early ({code!r}).", file=sys.stderr)
        return 2
    whole = len(mutants) == len(sources.mutants)
    stale = reasons.without_mutant(sources.mutants) if whole else ()
    report = Report(len(sources.mutants), campaign.outcomes, reasons, stale)
    print(*report.lines(), sep="\n")
    report.write(asked.results / f"{asked.name or _name_of(asked)}.json")
    return 0 if report.passes else 1


def chosen(mutants: Sequence[Mutant], asked: argparse.Namespace) -> list[Mutant]:
    """Give the mutants of the files and lines asked for, a sample of them if one is asked for."""
    files = {name if name.endswith(".lua") else f"{name}.lua" for name in asked.file}
    if unknown := files - {mutant.file for mutant in mutants}:
        sys.exit(f"There is nothing to change in {', '.join(sorted(unknown))}.")
    left = [mutant for mutant in mutants if not files or mutant.file in files]
    if asked.changed:
        lines = changed_lines(asked.changed)
        left = [mutant for mutant in left if (mutant.file, mutant.line) in lines]
    if asked.matching:
        left = [mutant for mutant in left if any(part in " | ".join(mutant.key) for part in asked.matching)]
    if asked.survivors_of:
        rows = json.loads(asked.survivors_of.read_text(encoding="utf-8"))["mutants"]
        alive = {tuple(row[name] for name in ("file", "function", "text", "mutation")) for row in rows if is_alive(row)}
        left = [mutant for mutant in left if mutant.key in alive]
    if asked.sample:
        left = random.Random(asked.seed).sample(left, min(asked.sample, len(left)))
    return left


def is_alive(row: dict[str, Any]) -> bool:
    """Tell whether a written outcome is a survivor's."""
    return row["fate"] not in {Fate.KILLED, Fate.TIMED_OUT}


def changed_lines(base: str) -> set[tuple[str, int]]:
    """Give file and number of each line of the functions that is not in a commit."""
    arguments = ["git", "diff", "--unified=0", base, "--", str(FOLDER)]
    diff = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    found, file = set(), ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            file = line.rpartition("/")[2]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, many = int(hunk[1]), int(hunk[2] or 1)
            found |= {(file, number) for number in range(first, first + many)}
    return found


def _name_of(asked: argparse.Namespace) -> str:
    parts = [name.removesuffix(".lua") for name in asked.file] or ["all"]
    return "-".join(
        [*parts, *(["changed"] if asked.changed else []), *([f"sample{asked.sample}"] if asked.sample else [])]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--file", action="append", default=[], help="only this file of the functions; again for more")
    parser.add_argument(
        "--matching",
        action="append",
        default=[],
        metavar="TEXT",
        help="only where `file | function | line | mutation` holds this; again for more",
    )
    parser.add_argument("--changed", nargs="?", const="HEAD", default="", metavar="BASE", help="only lines not in BASE")
    parser.add_argument("--survivors-of", type=Path, metavar="RESULTS", help="only what survived in these results")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only so many, drawn by --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--bound", type=float, default=MOST_S, metavar="SECONDS", help="of tests to run against a mutant"
    )
    parser.add_argument("--go-on", action="store_true", help="leave out what is known to be killed, if nothing changed")
    parser.add_argument("--no-pieces", action="store_true", help="run neither the machine nor the gate's rows")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--name", default="", help="of the file of results")
    parser.add_argument("tests", nargs="*", default=["tests/contract"], help="where the tests are")
    return parser


if __name__ == "__main__":
    sys.exit(main())
