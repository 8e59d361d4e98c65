"""The exporters of other queues, each from PyPI in an environment of its own, on a backlog of that queue's own.

Each comes from a folder that git ignores and is made once. One that can't be installed or started is named with the
error; none is left out in silence.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.environments import NotInstalled, environment
from bench.exporter_lab import Missing, free_port, running, scraped
from bench.lab import Lab
from bench.rows import Row

_FILL_WITHIN_S = 60
_SCRAPES = 20
_BACKLOG = 1000

_FILL_RQ = f"""
import sys
from redis import Redis
from rq import Queue
queue = Queue("backlog", connection=Redis.from_url(sys.argv[1]))
queue.enqueue_many([Queue.prepare_data(print, ("x",)) for _ in range({_BACKLOG})])
"""
_FILL_CELERY = f"""
import sys
from celery import Celery
app = Celery(broker=sys.argv[1])
for _ in range({_BACKLOG}):
    app.send_task("tasks.nothing", queue="backlog")
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """Say what to install, how its queue is filled and how it is started; {url} and {port} stand for what they say."""

    name: str
    packages: tuple[str, ...]
    fill: str
    database: int
    argv: tuple[str, ...]


PEERS = (
    Peer(
        "rq-exporter",
        ("rq-exporter==3.1.0",),
        _FILL_RQ,
        1,
        ("rq-exporter", "--redis-url", "{url}", "--host", "127.0.0.1", "--port", "{port}"),
    ),
    Peer(
        "celery-exporter",
        ("celery-exporter==1.5.1", "celery[redis]==5.7.0"),
        _FILL_CELERY,
        2,
        ("celery-exporter", "--broker-url={url}", "--listen-address=127.0.0.1:{port}", "--queue=backlog"),
    ),
)


def peer_rows(lab: Lab) -> list[Row]:
    """Measure every peer's scrape, or say why it has none."""
    return [_measured(peer, lab) for peer in PEERS]


def _measured(peer: Peer, lab: Lab) -> Row:
    name = f"scrape_ms:{peer.name}"
    try:
        programs = environment(peer.name, peer.packages) / "bin"
        url = f"{lab.url.removesuffix('/0')}/{peer.database}"
        _fill([str(programs / "python"), "-c", peer.fill, url])
        port = free_port()
        program, *flags = (word.format(url=url, port=port) for word in peer.argv)
        with running([str(programs / program), *flags], port, _environment()) as target, scraped(target) as scraper:
            scraper.scrape()
            took = [scraper.scrape()[0] * 1000 for _ in range(_SCRAPES)]
    except NotInstalled as error:
        return Row(name, [], "ms", None, False, f"{peer.packages[0]} can't be installed: {_cause(str(error))}")
    except (Missing, OSError, SystemExit, subprocess.SubprocessError) as error:
        return Row(name, [], "ms", None, False, f"{peer.packages[0]} was not measured: {error}")
    return Row(name, [median(took)], "ms", None, False, f"{peer.packages[0]}, {_BACKLOG} of its own jobs")


def _cause(text: str) -> str:
    """Give the line of pip's output that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "rror" in line and not line.startswith(("note:", "hint:"))]
    return (telling or lines or ["no reason given"])[0][:200]


def _fill(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_FILL_WITHIN_S, check=False, env=_environment())
    if done.returncode:
        raise Missing(f"its queue can't be filled: {_cause(done.stderr)}")


def _environment() -> dict[str, str]:
    """Give an environment in which nothing of this project's stands in for a peer's own."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "REDIS_URL", "PORT")}
