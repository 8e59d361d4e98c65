"""Start the parts of a torture, each a real process, and the means to strike them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import yaml

from drill.children import Children
from drill.controls import FaultControl
from drill.ports import LOOPBACK
from drill.readiness import answers_http
from drill.server import AppendFsync, QueueServer, ServerKind, ServerOptions
from drill.topology import OVERRIDING, command
from drill.torture import contract
from drill.torture.plan import Plan
from sluicegate.errors import SluicegateError
from sluicegate.settings import Settings
from sluicegate.store import Store

ACTOR = "torture"
SERVER = "queue-server"
AUTOMATION = "automation"
LOOKER = "caller-at-the-end"
PLAN = "plan.json"
_ENVIRONMENT = dict.fromkeys(OVERRIDING, "")
_API_PROCESSES = 2
# The faults that go on all the time: answers that are lost after the work was done, and answers that say 503.
_LOST_ANSWERS = 0.01
_ERRORS = 0.01
_INCIDENT_ERRORS = 0.6


class Parts:
    """Hold the running parts of one torture. Starting and killing is the main thread's (see `Children`)."""

    def __init__(self, children: Children, kind: ServerKind, plan: Plan, folder: Path) -> None:
        self.children = children
        self.plan = plan
        self.folder = folder
        fsync = AppendFsync.EVERY_SECOND if plan.loses else AppendFsync.ALWAYS
        options = ServerOptions(kind=kind, append_only=True, append_fsync=fsync)
        self.server = QueueServer(children, options, name=SERVER)
        self._settings: Settings | None = None
        self._store: Store | None = None
        self._faults: FaultControl | None = None

    def start(self) -> None:
        """Start all parts but the callers, and wait until they serve."""
        self.server.start()
        proxy = self._begin("proxy", ("drill", "proxy", "--seed", str(self.plan.seed)), "/version")
        provider = self._begin("provider", self._provider_words())
        provider_port = provider()
        self._faults = FaultControl(f"http://{LOOPBACK}:{proxy()}")
        address = self.faults.place_before(f"{LOOPBACK}:{provider_port}")
        settings = contract.settings_for(self.server.url, provider_port, f"http://{address}", self.plan.workers)
        self._settings = settings
        self._store = self._opened(settings)
        waits = [self._begin_automation(settings), *self._begin_apis(settings)]
        for name in self.worker_names():
            words = ("worker", "run", "--settings", str(self._file(name, settings)), "--worker-id", name)
            self.children.spawn(name, command(*words), environment=_ENVIRONMENT)
        ports = [wait() for wait in waits]
        self.plan = replace(
            self.plan,
            redis_url=self.server.url,
            api_urls=tuple(f"http://{LOOPBACK}:{port}" for port in ports[1:]),
        )
        self.faults_as_always()

    def start_callers(self, plan: Plan) -> tuple[str, ...]:
        """Start the callers; they begin at `plan.starts_at`. Gives their names."""
        (self.folder / PLAN).write_text(plan.to_json(), encoding="utf-8")
        names = tuple(f"caller-{number}" for number in range(plan.callers))
        for number, name in enumerate(names):
            self._start_caller(name, "--number", str(number))
        return names

    def start_looker(self) -> str:
        """Start the caller that looks at every job at the end, and give its name."""
        self._start_caller(LOOKER)
        return LOOKER

    def _start_caller(self, name: str, *words: str) -> None:
        log = self.folder / f"{name}.jsonl"
        argv = command("drill", "caller", "--plan", str(self.folder / PLAN), "--log", str(log), *words)
        self.children.spawn(name, argv, environment=_ENVIRONMENT)

    def worker_names(self) -> tuple[str, ...]:
        """Return the workers' names."""
        return tuple(f"worker-{number}" for number in range(1, self.plan.workers + 1))

    @staticmethod
    def api_names() -> tuple[str, ...]:
        """Return the names of the processes that serve the API."""
        return tuple(f"api-{number}" for number in range(1, _API_PROCESSES + 1))

    def close(self) -> None:
        """Close this process's own connections; the processes are ended by `Children`. Safe twice."""
        for part in (self._store, self._faults):
            if part is not None:
                part.close()

    @property
    def store(self) -> Store:
        """Return the conductor's own way to the queue; raises before start."""
        if self._store is None:
            raise SluicegateError("The torture's queue was not opened yet.")
        return self._store

    @property
    def faults(self) -> FaultControl:
        """Return the switch of the faults; raises before start."""
        if self._faults is None:
            raise SluicegateError("The torture's fault proxy was not started yet.")
        return self._faults

    def faults_as_always(self) -> None:
        """Let a few answers get lost after the work was done, and a few say 503, as in any week."""
        self.faults.heal()
        self.faults.lose_answers(_LOST_ANSWERS)
        self.faults.break_calls(503, _ERRORS)

    def incident(self) -> None:
        """Let most calls fail."""
        self.faults.heal()
        self.faults.break_calls(503, _INCIDENT_ERRORS)

    def _opened(self, settings: Settings) -> Store:
        store = Store.connect(settings.redis_url)
        declared = settings.contract
        answer = store.init_queue(declared.for_redis(), declared.digest(), ACTOR, "a torture opens its own queue")
        if answer.answer != "moved":
            raise SluicegateError(f"The torture's new server is not empty: it has the key {answer.why!r}.")
        return store

    def _provider_words(self) -> tuple[str, ...]:
        forgets = (word for name in contract.FORGOTTEN for word in ("--forgets", name))
        times = ("--service-s", str(contract.SERVICE_S), "--jitter-s", str(contract.JITTER_S))
        log = ("--log", str(self.folder / "provider.jsonl"), "--seed", str(self.plan.seed))
        return ("drill", "provider", *log, *times, *forgets)

    def _begin_automation(self, settings: Settings) -> Callable[[], int]:
        def words(port: int) -> tuple[str, ...]:
            snapshots = self.children.folder / "snapshots"
            mine = contract.with_automation(settings, port, snapshots, self.faults.reset_url)
            return command("automation", "serve", "--settings", str(self._file(AUTOMATION, mine)))

        return self.children.begin_listening(AUTOMATION, words, answers_http("/healthz"), environment=_ENVIRONMENT)

    def _begin_apis(self, settings: Settings) -> list[Callable[[], int]]:
        file = self._file("api", settings)
        return [self._begin(name, ("queue", "serve", "--settings", str(file))) for name in self.api_names()]

    def _begin(self, name: str, words: tuple[str, ...], health: str = "/healthz") -> Callable[[], int]:
        return self.children.begin_listening(
            name,
            lambda port: command(*words, "--port", str(port)),
            answers_http(health),
            environment=_ENVIRONMENT,
        )

    def _file(self, name: str, settings: Settings) -> Path:
        path = self.children.folder / f"settings-{name}.yaml"
        path.write_text(yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False), encoding="utf-8")
        return path
