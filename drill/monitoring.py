"""The real Prometheus and the real Alertmanager, as processes of the drill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from drill.children import Children
from drill.ports import LOOPBACK
from drill.program import Program, require
from drill.readiness import answers_http

_READY_PATH = "/-/ready"
_RETENTION = "2h"


def find_prometheus() -> Program:
    """Return the Prometheus program; raise UsageError that names the package when it is missing."""
    return require("Prometheus", ("prometheus",), "prometheus")


def find_alertmanager() -> Program:
    """Return the Alertmanager program, Debian's name first; raise UsageError that names the package."""
    return require("Alertmanager", ("prometheus-alertmanager", "alertmanager"), "prometheus-alertmanager")


@dataclass(frozen=True)
class PrometheusOptions:
    """Hold what a Prometheus needs to know: rule files, job → `host:port` targets, intervals, where alerts go.

    What is older than `retention` is forgotten.
    """

    rule_files: tuple[Path, ...]
    targets: Mapping[str, Sequence[str]]
    scrape_interval_s: float = 5.0
    evaluation_interval_s: float = 5.0
    alertmanagers: tuple[str, ...] = ()
    retention: str = _RETENTION


def duration(seconds: float) -> str:
    """Return seconds as a Prometheus duration; it knows no fractions, so milliseconds are the unit."""
    return f"{round(seconds * 1000)}ms"


def prometheus_config(options: PrometheusOptions) -> str:
    """Return the configuration file's text."""
    config: dict[str, object] = {
        "global": {
            "scrape_interval": duration(options.scrape_interval_s),
            "scrape_timeout": duration(options.scrape_interval_s),
            "evaluation_interval": duration(options.evaluation_interval_s),
        },
        "rule_files": [str(path.resolve()) for path in options.rule_files],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": list(targets)}]}
            for job, targets in options.targets.items()
        ],
    }
    if options.alertmanagers:
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": list(options.alertmanagers)}]}]}
    return yaml.safe_dump(config, sort_keys=False)


class Prometheus:
    """Run one Prometheus that keeps its data in the drill's folder."""

    def __init__(self, children: Children, options: PrometheusOptions, *, name: str = "prometheus") -> None:
        self._children = children
        self._options = options
        self._program = find_prometheus()
        self._name = name
        self.port = 0

    def start(self) -> None:
        """Write the configuration, start on a free port and wait until ready.

        Raises ChildDied with Prometheus's own words when it refuses a rule file.
        """
        config = self._write_config()
        self.port = self._children.start_listening(
            self._name,
            lambda port: prometheus_arguments(self._program.path, port, config, self._options.retention),
            answers_http(_READY_PATH),
        )

    def reload(self, options: PrometheusOptions | None = None) -> None:
        """Ask it to read its configuration, new where one is given, and its rule files; it does so a moment later."""
        if options is not None:
            self._options = options
            self._write_config()
        self._children.hang_up(self._name)

    def _write_config(self) -> Path:
        folder = self._children.folder / self._name
        folder.mkdir(exist_ok=True)
        config = folder / "prometheus.yml"
        config.write_text(prometheus_config(self._options), encoding="utf-8")
        return config

    def stop(self) -> None:
        """Ask it to end, kill it after the grace; safe twice and before start."""
        if self._children.is_running(self._name):
            self._children.end(self._name)

    @property
    def url(self) -> str:
        """Return the address of the HTTP API and the web pages."""
        return f"http://{LOOPBACK}:{self.port}"

    def describe(self) -> str:
        """Return what runs, for example `Prometheus 2.42.0 (/usr/bin/prometheus)`."""
        return str(self._program)


def prometheus_arguments(path: Path, port: int, config: Path, retention: str = _RETENTION) -> tuple[str, ...]:
    """Return Prometheus's command line: loopback only, data beside the configuration, a short memory by itself."""
    return (
        str(path),
        f"--config.file={config}",
        f"--storage.tsdb.path={config.parent / 'data'}",
        f"--storage.tsdb.retention.time={retention}",
        f"--web.listen-address={LOOPBACK}:{port}",
        f"--web.external-url=http://{LOOPBACK}:{port}/",
        "--log.level=warn",
    )


class Alertmanager:
    """Run one Alertmanager, alone: it joins no cluster."""

    def __init__(self, children: Children, config_text: str, *, name: str = "alertmanager") -> None:
        self._children = children
        self._config_text = config_text
        self._program = find_alertmanager()
        self._name = name
        self.port = 0

    def start(self) -> None:
        """Write the configuration, start on a free port and wait until ready.

        Raises ChildDied with Alertmanager's own words when it refuses the configuration.
        """
        folder = self._children.folder / self._name
        folder.mkdir(exist_ok=True)
        config = folder / "alertmanager.yml"
        config.write_text(self._config_text, encoding="utf-8")
        self.port = self._children.start_listening(
            self._name, lambda port: alertmanager_arguments(self._program.path, port, config), answers_http(_READY_PATH)
        )

    def stop(self) -> None:
        """Ask it to end, kill it after the grace; safe twice and before start."""
        if self._children.is_running(self._name):
            self._children.end(self._name)

    @property
    def address(self) -> str:
        """Return `host:port`, as Prometheus wants it."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        """Return the address of the HTTP API and the web pages."""
        return f"http://{self.address}"

    def describe(self) -> str:
        """Return what runs, for example `Alertmanager 0.25.0 (/usr/bin/prometheus-alertmanager)`."""
        return str(self._program)


def alertmanager_arguments(
    path: Path, port: int, config: Path, *, data: Path | None = None, cluster: str = "", peers: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return Alertmanager's command line: loopback only, data beside the configuration unless named.

    `cluster` is the `host:port` at which it talks to its peers; without one it is alone.
    """
    return (
        str(path),
        f"--config.file={config}",
        f"--storage.path={data or config.parent / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        f"--web.external-url=http://{LOOPBACK}:{port}/",
        # Port 9094 is asked for even by a lone one unless this is empty; the second drill would fail on it.
        f"--cluster.listen-address={cluster}",
        *(f"--cluster.peer={peer}" for peer in peers if peer != cluster),
        "--log.level=warn",
    )
