"""The guide to a queue of one's own, from an empty folder: every service of it runs, and real alerts come through."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from drill.children import Children
from drill.monitoring import find_alertmanager
from drill.ports import lasting_port
from tests.guides import GUIDES, GUIDES_URL, Guide, Typed, Typist, blocks, settings_text
from tests.queues import wait_until

WITHIN_S = 60
# What listens where in the guide.
PORTS = {
    "redis": 6379,
    "provider": 8080,
    "exporter": 9108,
    "automation": 9109,
    "prometheus": 9090,
    "alertmanager": 9093,
}
PAGE = (GUIDES / "your-queue.md").read_text(encoding="utf-8")


class Reader:
    """Follow the guide in a folder, on ports of one's own."""

    def __init__(self, guide: Guide, children: Children, folder: Path) -> None:
        self.guide = guide
        self.folder = folder
        self.ports: dict[str, int] = {}
        for name in PORTS:
            self.ports[name] = lasting_port(set(self.ports.values()))
        instead = {f"127.0.0.1:{PORTS[name]}": f"127.0.0.1:{port}" for name, port in self.ports.items()}
        instead |= {f"--port {PORTS[name]}": f"--port {port}" for name, port in self.ports.items()}
        instead["prometheus-alertmanager "] = f"{find_alertmanager().path} "
        self.typist = Typist(children, folder, instead=instead)

    def writes(self, name: str, text: str) -> None:
        """Write one of the guide's files."""
        (self.folder / name).write_text(self.typist.filled(text), encoding="utf-8")

    def types(self, *beginnings: str) -> None:
        for beginning in beginnings:
            self.typist.types(self.guide.next(beginning))

    def starts(self, name: str, beginning: str, more: str = "") -> None:
        """Start what the next command starts, with further words."""
        command = self.guide.next(beginning)
        self.typist.starts(name, Typed(f"{command.line} {more}"))

    def until(self, beginning: str, holds: Callable[[str], object]) -> Typed:
        """Type the next command until what it says is so, and give it."""
        command = self.guide.next(beginning)
        wait_until(lambda: bool(holds(self.typist.tries(command))), command.line, WITHIN_S)
        return command


def settings(ports: dict[str, int]) -> str:
    """Give the guide's settings file with the test's ports, and a ramp that grows every second."""
    body = yaml.safe_load(settings_text(GUIDES_URL))
    body |= {name: {"port": ports[name]} for name in ("exporter", "automation")}
    body["contract"]["timings"] = {"ramp_step_s": 1}
    body["monitoring"] = {"webhook_url": f"http://127.0.0.1:{ports['automation']}/webhooks/alertmanager"}
    return yaml.safe_dump(body)


def services(reader: Reader) -> None:
    """Open the queue and start all that the guide starts."""
    reader.types("export PATH", "sluicegate --version")
    reader.starts("redis", "redis-server", f"--port {reader.ports['redis']}")
    reader.writes("sluicegate.yaml", settings(reader.ports))
    reader.starts("provider", "sluicegate drill provider")
    reader.until("sluicegate queue doctor", bool)
    reader.types("sluicegate queue init", "sluicegate queue apply")
    for name, beginning in (
        ("automation", "automation serve"),
        ("exporter", "exporter serve"),
        ("worker", "worker run"),
    ):
        reader.starts(name, f"sluicegate {beginning}")
    reader.types("sluicegate rules generate", "sluicegate dashboards generate")
    (config,) = [block for block in blocks(PAGE, "yaml") if "scrape_configs:" in block]
    reader.writes("monitoring/prometheus.yml", config)
    # What is told before Alertmanager is found is told again, by default after a minute.
    reader.starts("prometheus", "prometheus ", "--rules.alert.resend-delay=2s")
    reader.starts("alertmanager", "prometheus-alertmanager ")


@pytest.mark.timeout(300)
def test_the_guide_is_followed_to_a_run_that_a_real_alert_opened(children: Children, tmp_path: Path) -> None:
    submit, trouble = (block for block in blocks(PAGE, "python") if "import Producer" in block)
    with Guide.named("your-queue") as guide:
        reader = Reader(guide, children, tmp_path)
        services(reader)
        reader.writes("submit.py", submit)
        subprocess.run([sys.executable, "submit.py"], cwd=tmp_path, check=True, timeout=WITHIN_S)
        effects = tmp_path / "effects.jsonl"
        wait_until(lambda: "change-4711" in effects.read_text(encoding="utf-8"), "the job is done", WITHIN_S)
        reader.until("amtool alert", lambda said: "SluicegateWatchdog" in said)

        reader.writes("trouble.py", trouble)
        reader.types("python trouble.py")
        reader.until("amtool alert", lambda said: "SluicegateProviderErrorsHigh" in said)
        runs = reader.until("sluicegate automation runs", lambda said: "running at fix (by webhook" in said)
        reader.typist.puts("RUN", reader.typist.types(runs).split()[0])
        reader.types("python -c", "sluicegate automation approve", "sluicegate automation watch", "export REDIS_URL")
        reader.until("sluicegate gate show", lambda said: "run_succeeded" in said)
    assert children.failed() == ()
