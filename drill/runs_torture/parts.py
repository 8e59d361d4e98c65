"""Start the parts of a torture of runs: one server, many queues, three replicas, two Alertmanagers, all real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import yaml

from drill.children import Children
from drill.monitoring import Prometheus, PrometheusOptions, alertmanager_arguments, find_alertmanager
from drill.ports import LOOPBACK, lasting_port
from drill.readiness import answers_http
from drill.runs_torture.contract import settings_for
from drill.runs_torture.outside import Behaviour, Hook, Post, Route
from drill.runs_torture.plan import Plan
from drill.server import AppendFsync, QueueServer, ServerKind, ServerOptions
from drill.topology import OVERRIDING, command
from rules.generate import render_alertmanager, render_rules
from sluicegate.errors import SluicegateError
from sluicegate.settings import Settings
from sluicegate.store import Store

ACTOR = "torture"
SERVER, EXPORTER, OUTSIDE, MILL = "queue-server", "exporter", "outside", "mill"
REPLICAS = ("replica-1", "replica-2", "replica-3")
ALERTMANAGERS = ("alertmanager-1", "alertmanager-2")
OUTSIDE_LOG = "outside.jsonl"
_ENVIRONMENT = dict.fromkeys(OVERRIDING, "")
_REPLICA_WITHIN_S = 60.0
_STORE_TIMEOUT_S = 2.0


class Parts:
    """Hold the running parts of one torture. Starting and killing is the main thread's (see `Children`)."""

    def __init__(self, children: Children, kind: ServerKind, plan: Plan, folder: Path) -> None:
        self.children = children
        self.plan = plan
        self.folder = folder
        self.settings: dict[str, Settings] = {}
        self._server = QueueServer(children, ServerOptions(kind, append_only=True, append_fsync=AppendFsync.ALWAYS))
        self._outside_url = ""
        self._doors: dict[str, list[str]] = {name: [] for name in plan.names}
        self._ports: set[int] = set()
        self._control = httpx.Client(timeout=5.0, trust_env=False)

    def start(self) -> None:
        """Start everything, open every queue, and wait until replicas and Alertmanagers serve."""
        self._server.start()
        self._outside_url = f"http://{LOOPBACK}:{self._start_outside()}"
        for name in self.plan.names:
            settings = settings_for(name, self._server.url, self._outside_url, self.folder / "snapshots")
            self.settings[name] = settings
            self._open(settings)
        exporter = self._begin_exporter()
        ready = [self._begin_replica(name) for name in REPLICAS]
        words = [word for name in self.plan.names for word in ("--settings", str(self._file(MILL, name)))]
        self.children.spawn(MILL, command("drill", "mill", *words, "--name", MILL), environment=_ENVIRONMENT)
        for wait in ready:
            wait()
        self._start_alerting(exporter())
        self.carry(Post.CARRIED)

    def close(self) -> None:
        """Close this process's own connections."""
        self._control.close()

    def connect(self, queue: str) -> Store:
        """Give a new way to a queue; whoever asked closes it."""
        return Store.connect(self._server.url, queue, timeout_s=_STORE_TIMEOUT_S)

    @property
    def redis_url(self) -> str:
        return self._server.url

    def behave(self, queue: str, *, provider_fails: bool, hook: Hook) -> None:
        """Set one queue's world; from any thread."""
        wanted = Behaviour(provider_fails=provider_fails, hook=hook)
        httpx.put(f"{self._outside_url}/{queue}", json=wanted.model_dump(), timeout=5.0, trust_env=False)

    def carry(self, post: Post) -> None:
        """Tell the postman how to carry notifications from now on."""
        route = Route(post=post, doors=self._doors)
        self._control.put(f"{self._outside_url}/route", json=route.model_dump()).raise_for_status()

    def notify(self, body: Mapping[str, object]) -> None:
        """Post a notification as Alertmanager would, through the postman; whatever comes of it. From any thread."""
        httpx.post(f"{self._outside_url}/relay", json=body, timeout=10.0, trust_env=False)

    def replica_of(self, owner: str) -> str | None:
        """Give which replica a name in a journal belongs to: `executor:HOST:PID:…`."""
        pid = owner.split(":")[2] if owner.count(":") == 3 else ""
        return next((name for name in REPLICAS if str(self.children.pids().get(name)) == pid), None)

    def _start_outside(self) -> int:
        log = str(self.folder / OUTSIDE_LOG)
        words = ("drill", "outside", "--log", log, "--seed", str(self.plan.seed))
        return self.children.start_listening(
            OUTSIDE,
            lambda port: command(*words, "--port", str(port)),
            answers_http("/healthz"),
            environment=_ENVIRONMENT,
        )

    def _open(self, settings: Settings) -> None:
        store, contract = self.connect(settings.queue), settings.contract
        try:
            answer = store.init_queue(contract.for_redis(), contract.digest(), ACTOR, "a torture opens its own queue")
        finally:
            store.close()
        if answer.answer != "moved":
            raise SluicegateError(f"The torture's new queue {settings.queue} is not empty: {answer.why!r}.")

    def _begin_exporter(self) -> Callable[[], int]:
        words = [word for name in self.plan.names for word in ("--queue", name)]
        file = str(self._file(EXPORTER, self.plan.names[0]))
        return self.children.begin_listening(
            EXPORTER,
            lambda port: command("exporter", "serve", "--settings", file, "--port", str(port), *words),
            answers_http("/healthz"),
            environment=_ENVIRONMENT,
        )

    def _begin_replica(self, name: str) -> Callable[[], int]:
        """Start one replica of every queue's automation service, each on a port of its own."""
        words: list[str] = []
        first = 0
        for queue in self.plan.names:
            # It is killed and started again on the same ports.
            port = lasting_port(self._ports)
            self._ports.add(port)
            first = first or port
            self._doors[queue].append(f"http://{LOOPBACK}:{port}")
            words += ["--settings", str(self._file(name, queue, port))]
        return self.children.begin_listening(
            name,
            lambda _: command("drill", "replica", *words),
            answers_http("/healthz"),
            environment=_ENVIRONMENT,
            port=first,
            within_s=_REPLICA_WITHIN_S,
        )

    def _start_alerting(self, exporter_port: int) -> None:
        any_settings = self.settings[self.plan.names[0]]
        rules = []
        for name, settings in self.settings.items():
            rules.append(self.children.folder / f"{name}.rules.yml")
            rules[-1].write_text(render_rules(settings), encoding="utf-8")
        config = self.children.folder / "alertmanager.yml"
        config.write_text(render_alertmanager(any_settings), encoding="utf-8")
        peers = [f"{LOOPBACK}:{lasting_port(self._ports)}" for _ in ALERTMANAGERS]
        ports = [self._start_alertmanager(name, config, peers, n) for n, name in enumerate(ALERTMANAGERS)]
        monitoring = any_settings.monitoring
        doors = [door.removeprefix("http://") for doors in self._doors.values() for door in doors]
        options = PrometheusOptions(
            rule_files=tuple(rules),
            targets={monitoring.exporter_job: (f"{LOOPBACK}:{exporter_port}",), monitoring.automation_job: doors},
            scrape_interval_s=monitoring.scrape_interval_s,
            evaluation_interval_s=monitoring.evaluation_interval_s,
            alertmanagers=tuple(f"{LOOPBACK}:{port}" for port in ports),
        )
        Prometheus(self.children, options).start()

    def _start_alertmanager(self, name: str, config: Path, peers: list[str], number: int) -> int:
        program = find_alertmanager()
        data = self.children.folder / name
        return self.children.start_listening(
            name,
            lambda port: alertmanager_arguments(
                program.path, port, config, data=data, cluster=peers[number], peers=tuple(peers)
            ),
            answers_http("/-/ready"),
        )

    def _file(self, part: str, queue: str, port: int = 0) -> Path:
        settings = self.settings[queue]
        automation = settings.automation.model_copy(update={"port": port})
        path = self.children.folder / f"settings-{part}-{queue}.yaml"
        body = settings.model_copy(update={"automation": automation}).model_dump(mode="json")
        path.write_text(yaml.safe_dump(body, sort_keys=False), encoding="utf-8")
        return path
