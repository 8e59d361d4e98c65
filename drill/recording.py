"""What a kept drill's Prometheus recorded, asked for after the drill: the folder's data under a new Prometheus."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from drill.children import Children
from drill.monitoring import Prometheus, PrometheusOptions
from drill.report import FIGURES
from drill.topology import AUTOMATION

_NAME = "prometheus"
# The first figures are scraped a moment before the drill's first sample, and records come after them.
_AROUND_S = 1.0


@dataclass(frozen=True)
class Recording:
    """Hold where a kept drill is recorded: its Prometheus, its settings, and from when to when it ran (Unix ms)."""

    url: str
    settings: Path
    from_ms: int
    to_ms: int

    @property
    def words(self) -> tuple[str, ...]:
        """Give what names it on the command line of whoever asks a Prometheus."""
        begins, ends = (datetime.fromtimestamp(ms / 1000, UTC).isoformat() for ms in (self.from_ms, self.to_ms))
        return (
            *("--prometheus-url", self.url, "--settings", str(self.settings)),
            *("--since", begins, "--until", ends),
        )


@contextmanager
def recording(kept: Path, report: Path) -> Iterator[Recording]:
    """Serve what was recorded until the block ends; the kept folder stays as it is."""
    samples = json.loads((report / FIGURES).read_text(encoding="utf-8"))["samples"]
    with Children() as children:
        shutil.copytree(kept / _NAME / "data", children.folder / _NAME / "data", ignore=shutil.ignore_patterns("lock"))
        prometheus = Prometheus(children, PrometheusOptions((), {}, retention="10y"))
        prometheus.start()
        yield Recording(
            prometheus.url,
            kept / f"settings-{AUTOMATION}.yaml",
            round(samples[0]["at_ms"] - 1000 * _AROUND_S),
            round(samples[-1]["at_ms"] + 1000 * _AROUND_S),
        )
