"""Start every part of a drill, each a real process, in the order in which they need each other."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import yaml

import sluicegate
from drill.alerting import Alerting
from drill.children import Children
from drill.controls import ApiControl, AutomationControl, FaultControl, PrometheusControl
from drill.monitoring import find_alertmanager, find_prometheus
from drill.needs import Plan
from drill.ports import LOOPBACK
from drill.readiness import answers_http
from drill.server import AppendFsync, QueueServer, ServerOptions, find_server
from sluicegate.errors import SluicegateError
from sluicegate.settings import Settings
from sluicegate.store import Store

ACTOR = "drill"
AUTOMATION = "automation"
EXPORTER = "exporter"
PROVIDER = "provider"
PROXY = "proxy"
API = "api"
EFFECTS_FILE = "provider.jsonl"
# The environment names that a settings file gives way to (contract §10). Empty, they say nothing: a drill must never
# reach the queue that the shell it was started from points at.
OVERRIDING = (
    "REDIS_URL",
    "REDIS_PASSWORD_FILE",
    "PROVIDER_URL",
    "PORT",
    "SLUICEGATE_QUEUE",
    "WORKER_MAX_INFLIGHT",
    "DEADLINE_SWEEP_MS",
    "ADMIT_QUEUE_AGE_P95_MAX_S",
    "DRAIN_PROVIDER_5XX_RATE",
    "DRAIN_QUEUE_AGE_P95_S",
    "CANARY_REQUIRED_OK",
)
_ENVIRONMENT = dict.fromkeys(OVERRIDING, "")
_STORE_TIMEOUT_S = 2.0

Part = TypeVar("Part")


def command(*words: str) -> tuple[str, ...]:
    """Return the command line that runs a word of this very installation."""
    return (sys.executable, "-m", "sluicegate", *words)


def check_programs(plan: Plan) -> None:
    """Raise UsageError, before anything is started, when a server's program is missing."""
    find_server(plan.server)
    if plan.needs.monitoring:
        find_prometheus()
        find_alertmanager()


class Topology:
    """Hold the running parts of one drill. Starting and stopping is the main thread's (see `Children`)."""

    def __init__(self, children: Children, plan: Plan) -> None:
        self.children = children
        self.plan = plan
        # Where the data is to survive, it survives a kill: every write is on the disk before it is answered.
        options = ServerOptions(plan.server, append_only=plan.needs.append_only, append_fsync=AppendFsync.ALWAYS)
        self.server = QueueServer(children, options)
        self._settings = plan.profile.settings
        self._store: Store | None = None
        self._faults: FaultControl | None = None
        self._automation: AutomationControl | None = None
        self._api: ApiControl | None = None
        self._alerting: Alerting | None = None

    def start(self, between: Callable[[str], None], pause: Callable[[float], None]) -> None:
        """Start all parts and wait until they work together.

        `between` is called before each part with its name, `pause` to wait for some seconds; both may raise to stop
        there.
        """
        needs = self.plan.needs
        between("queue server")
        self._start_server()
        if needs.monitoring:
            between("Prometheus")
            self._alerting = Alerting(self.children, self._settings.monitoring)
            self._alerting.start_prometheus()
        between("exporter, fault proxy and provider" if needs.exporter else "fault proxy and provider")
        exporter = self._begin_exporter() if needs.exporter else None
        proxy, provider = self._begin_proxy(), self._begin_provider()
        api = self._begin_api() if needs.api else None
        self._faults = FaultControl(f"http://{LOOPBACK}:{proxy()}")
        between("automation")
        automation = self._begin_automation()
        self._place_proxy(provider())
        between("workers")
        for name in needs.workers:
            self.start_worker(name)
        if exporter is not None:
            self._take_exporter(exporter())
        self._take_automation(automation())
        if api is not None:
            self._api = ApiControl(f"http://{LOOPBACK}:{api()}")
        if self._alerting is not None:
            between("Alertmanager")
            self._alerting.start_alertmanager(self._settings)
            between("rules")
            self._alerting.load_rules(self._settings, pause)

    def close(self) -> None:
        """Close this process's own connections; the processes are ended by `Children`. Safe twice."""
        for part in (self._store, self._faults, self._automation, self._api, self._alerting):
            if part is not None:
                part.close()

    @property
    def settings(self) -> Settings:
        """Return the settings of the running parts."""
        return self._settings

    @property
    def effects_log(self) -> Path:
        """Return the provider's own log of what it did."""
        return self.children.folder / EFFECTS_FILE

    @property
    def store(self) -> Store:
        """Return the drill's own way to the queue; raises before start."""
        return _started(self._store, "queue server")

    @property
    def faults(self) -> FaultControl:
        """Return the switch of the faults; raises before start."""
        return _started(self._faults, "fault proxy")

    @property
    def automation(self) -> AutomationControl:
        """Return the person's door to the runs; raises before start."""
        return _started(self._automation, AUTOMATION)

    @property
    def api(self) -> ApiControl:
        """Return the producers' door over HTTP; raises in a drill without it."""
        return _started(self._api, "HTTP API")

    @property
    def prometheus(self) -> PrometheusControl | None:
        """Return the way to Prometheus, None in a drill without it."""
        return self._alerting.control if self._alerting is not None else None

    def real_parts(self) -> tuple[str, ...]:
        """Say which real parts the drill runs on, with version and path."""
        parts = [f"Sluicegate {sluicegate.__version__} ({Path(sluicegate.__file__).parent})"]
        parts.append(f"Python {platform.python_version()} ({sys.executable})")
        parts.append(self.server.describe())
        return (*parts, *(self._alerting.describe() if self._alerting is not None else ()))

    def start_worker(self, name: str) -> None:
        """Start a worker under a name that is free."""
        argv = command("worker", "run", "--settings", str(self._settings_file(name, self._settings)))
        self.children.spawn(name, (*argv, "--worker-id", name), environment=_ENVIRONMENT)

    def _start_server(self) -> None:
        self.server.start()
        self._settings = self._settings.model_copy(update={"redis_url": self.server.url})
        self._store = Store.connect(self.server.url, self._settings.queue, timeout_s=_STORE_TIMEOUT_S)
        contract = self._settings.contract
        answer = self._store.init_queue(contract.for_redis(), contract.digest(), ACTOR, "a drill opens its own queue")
        if answer.answer != "moved":
            raise SluicegateError(f"The drill's new server is not empty: it has the key {answer.why!r}.")

    def _begin_exporter(self) -> Callable[[], int]:
        return self._begin(EXPORTER, lambda port: self._serving(EXPORTER, self._with_exporter(port)))

    def _with_exporter(self, port: int) -> Settings:
        exporter = self._settings.exporter.model_copy(update={"host": LOOPBACK, "port": port})
        return self._settings.model_copy(update={EXPORTER: exporter})

    def _take_exporter(self, port: int) -> None:
        self._settings = self._with_exporter(port)

    def _begin_proxy(self) -> Callable[[], int]:
        words = ("drill", "proxy", "--seed", str(self.plan.seed))
        return self._begin(PROXY, lambda port: (*words, "--port", str(port)), "/version")

    def _begin_provider(self) -> Callable[[], int]:
        words = ("drill", "provider", "--log", str(self.effects_log), "--seed", str(self.plan.seed))
        return self._begin(PROVIDER, lambda port: (*words, "--port", str(port)))

    def _place_proxy(self, provider_port: int) -> None:
        """Put a proxy before the provider; it is all that the workers know of the provider."""
        address = self.faults.place_before(f"{LOOPBACK}:{provider_port}")
        self._settings = self._settings.model_copy(update={"provider_url": f"http://{address}"})

    def _begin_api(self) -> Callable[[], int]:
        def words(port: int) -> tuple[str, ...]:
            api = self._settings.api.model_copy(update={"host": LOOPBACK, "port": port})
            path = self._settings_file(API, self._settings.model_copy(update={API: api}))
            return ("queue", "serve", "--settings", str(path))

        return self._begin(API, words)

    def _begin_automation(self) -> Callable[[], int]:
        return self._begin(AUTOMATION, lambda port: self._serving(AUTOMATION, self._with_automation(port)))

    def _with_automation(self, port: int) -> Settings:
        before = self._settings.automation
        hook_url = self.faults.reset_url if self.plan.needs.fixed_by_hook else None
        update = {
            "host": LOOPBACK,
            "port": port,
            "snapshot_dir": self.children.folder / "snapshots",
            "fix": before.fix.model_copy(update={"hook_url": hook_url}),
        }
        return self._settings.model_copy(update={AUTOMATION: before.model_copy(update=update)})

    def _take_automation(self, port: int) -> None:
        url = f"http://{LOOPBACK}:{port}"
        self._automation = AutomationControl(url)
        settings = self._with_automation(port)
        monitoring = settings.monitoring.model_copy(update={"webhook_url": f"{url}/webhooks/alertmanager"})
        self._settings = settings.model_copy(update={"monitoring": monitoring})

    def _serving(self, word: str, settings: Settings) -> tuple[str, ...]:
        return (word, "serve", "--settings", str(self._settings_file(word, settings)))

    def _begin(self, name: str, words: Callable[[int], Sequence[str]], health: str = "/healthz") -> Callable[[], int]:
        return self.children.begin_listening(
            name, lambda port: command(*words(port)), answers_http(health), environment=_ENVIRONMENT
        )

    def _settings_file(self, name: str, settings: Settings) -> Path:
        path = self.children.folder / f"settings-{name}.yaml"
        path.write_text(yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False), encoding="utf-8")
        return path


def _started(part: Part | None, name: str) -> Part:
    if part is None:
        raise SluicegateError(f"The drill's {name} was not started yet.")
    return part
