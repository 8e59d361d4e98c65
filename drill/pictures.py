"""Make the pictures of the docs from one drill: its dashboards, and the replay of its alerts.

`make pictures` runs it. The pictures are not generated files: every drill is another one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from drill.recording import Recording, recording
from drill.report import LATEST
from drill.topology import command
from sluicegate.errors import SluicegateError

IMAGES = Path("docs/images")
_KEPT = re.compile(r"^kept: (.+)$", re.MULTILINE)


def main(arguments: list[str]) -> None:
    """Run a drill with these flags, then draw what its Prometheus recorded; nothing but the pictures is left."""
    with tempfile.TemporaryDirectory(prefix="sluicegate-pictures-") as folder:
        reports = Path(folder) / "report"
        said = run("drill", "--keep", "--report-dir", str(reports), *arguments, TMPDIR=folder)
        found = _KEPT.search(said)
        if found is None:
            raise SluicegateError(f"The drill kept no folder:\n{said}")
        with recording(Path(found[1]), reports / LATEST) as recorded:
            draw(recorded, " ".join(["sluicegate drill", *arguments]))


def draw(recorded: Recording, drill: str, out: Path = IMAGES) -> None:
    """Draw everything that is in the docs."""
    day = datetime.fromtimestamp(recorded.from_ms / 1000, UTC)
    says = f"Data of `{drill}` on {day:%Y-%m-%d}; drawn by `make pictures`, not by Grafana."
    run("dashboards", "picture", *recorded.words, "--out", str(out), "--says", says)
    run("rules", "backtest", *recorded.words, "--plot", str(out / "backtest.svg"))


def run(*words: str, **environment: str) -> str:
    """Run a word of this installation to its end and give what it said; raises SluicegateError where it fails."""
    result = subprocess.run(
        command(*words),
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise SluicegateError(f"`sluicegate {words[0]}` ended with {result.returncode}:\n{result.stdout}")
    return result.stdout


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SluicegateError as error:
        sys.exit(str(error))
