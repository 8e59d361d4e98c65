"""The exporters of other queues, each from PyPI in an environment of its own, on a backlog of that queue's own.

Each comes from a folder that git ignores and is made once. One that can't be installed or started is named with the
error; none is left out in silence.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.exporter_lab import Missing, free_port, running, scraped
from bench.lab import Lab
from bench.rows import Row

CACHE = Path(".bench-cache")
_INSTALL_WITHIN_S = 300
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
        ("rq-exporter",),
        _FILL_RQ,
        1,
        ("rq-exporter", "--redis-url", "{url}", "--host", "127.0.0.1", "--port", "{port}"),
    ),
    Peer(
        "celery-exporter",
        ("celery-exporter", "celery[redis]"),
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
        programs = _installed(peer)
        url = f"{lab.url.removesuffix('/0')}/{peer.database}"
        _run([str(programs / "python"), "-c", peer.fill, url], "its queue can't be filled")
        port = free_port()
        program, *flags = (word.format(url=url, port=port) for word in peer.argv)
        with running([str(programs / program), *flags], port, _environment()) as target, scraped(target) as scraper:
            scraper.scrape()
            took = [scraper.scrape()[0] * 1000 for _ in range(_SCRAPES)]
    except (Missing, OSError, SystemExit) as error:
        return Row(name, [], "ms", None, False, f"not measured: {error}")
    except Exception as error:  # noqa: BLE001 (whatever a peer does wrong is told with its name)
        return Row(name, [], "ms", None, False, f"not measured: {type(error).__name__}: {error}")
    return Row(name, [median(took)], "ms", None, False, f"{_version(programs, peer)}, {_BACKLOG} of its own jobs")


def _installed(peer: Peer) -> Path:
    """Give the folder of its programs; raises Missing with pip's last line."""
    home = CACHE / peer.name
    done = home / "installed"
    if not done.exists():
        _run([sys.executable, "-m", "venv", "--clear", str(home)], "no environment can be made for it")
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *peer.packages], "it can't be installed")
        done.touch()
    return home / "bin"


def _version(programs: Path, peer: Peer) -> str:
    asked = f"from importlib.metadata import version; print(version({peer.name!r}))"
    found = subprocess.run([str(programs / "python"), "-c", asked], capture_output=True, text=True, check=False)
    return f"{peer.name} {found.stdout.strip()}"


def _run(argv: Sequence[str], failed: str) -> None:
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=_INSTALL_WITHIN_S, check=False, env=_environment()
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise Missing(f"{failed}: {last}")


def _environment() -> dict[str, str]:
    """Give an environment in which nothing of this project's stands in for a peer's own."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "REDIS_URL", "PORT")}
