"""Wire one automation process: controller, episodes, executor and its HTTP server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import structlog

from automation.access import Access
from automation.api import create_app
from automation.controller import Controller
from automation.episodes import Episodes
from automation.executor import Executor
from automation.looping import Loop, Service
from automation.metrics import AutomationMetrics
from automation.notices.telling import telling
from automation.opening import Opening
from automation.page.feed import Feed
from automation.page.routes import Page
from automation.preflight import weaknesses
from runbooks.context import Context
from runbooks.library import in_force
from runbooks.model import Runbook
from runbooks.plan import lines_by_place
from sluicegate.all_queues import AllQueues
from sluicegate.clock import SystemClock
from sluicegate.errors import StoreError
from sluicegate.gate_sentences import opening
from sluicegate.listening import is_loopback, listen
from sluicegate.notice_board import NoticeBoard
from sluicegate.reconciler import Reconciler
from sluicegate.settings import Settings
from sluicegate.store import Store
from sluicegate.web.serving import FollowingServer, quiet_config

log = structlog.get_logger(__name__)

# While the store hangs each loop holds a thread for its timeout; the webhook needs one all the same.
_THREADS = 16
# A body that comes slowly is given up before that.
_LAST_ANSWERS_S = 7
_NOTE_AUDIT_S = 3600.0


def runbooks_in_force(settings: Settings) -> dict[str, Runbook]:
    """Give the runbooks by name: the shipped ones, and those of the settings' folder beside or in place of them."""
    return dict(in_force(settings.automation.runbook_dir))


def _check_lines(runbooks: Mapping[str, Runbook], settings: Settings) -> None:
    """Render every line now: a setting that no step can use is a SettingsError at start, not in mid-incident."""
    context = Context(settings)
    for runbook in runbooks.values():
        lines_by_place(runbook, context)
        runbook.max_runtime.resolve(context)
        for condition in runbook.confirm.any_of:
            condition.worded(context)


class Automation:
    """Own the parts of one process; `stop` is safe twice and before `start`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runbooks = runbooks_in_force(settings)
        _check_lines(self._runbooks, settings)
        self._metrics = AutomationMetrics()
        self._access = Access(settings.automation)
        self._store = Store.of(settings)
        self._everywhere = AllQueues.over(settings)
        weak_server = settings.automation.weak_server
        opening = Opening(
            self._store, self._everywhere, lambda queue: Store.of(settings, queue, read_only=True), weak_server
        )
        self._episodes = Episodes(opening, settings, self._runbooks, self._metrics)
        recovery, clock = self._runbooks["drain-and-recover"], SystemClock()
        controller = Controller(opening, settings, recovery, clock, self._metrics)
        self._board = NoticeBoard.of(settings)
        self._parts: list[Service] = [
            controller,
            self._episodes,
            Executor(self._store, self._everywhere, settings, self._runbooks, clock, self._metrics),
        ]
        self._parts.append(Loop("audit", _NOTE_AUDIT_S, self._note_audit))
        self._parts += telling(self._board, controller, settings, clock, self._metrics)
        self._feed = Feed(self._store, settings.automation.page)
        self._page = Page(self._store, self._feed, self._runbooks, settings)
        self._parts += [self._feed, self._page.evidence]
        if settings.reconcile.automatic:
            self._parts.append(_reconciling(self._store, settings))

    async def serve(self) -> None:
        """Serve until SIGINT or SIGTERM; starts while Redis is down. Raises UsageError when the port is taken."""
        own = self._settings.automation
        with listen(own.host, own.port, "the automation service") as bound:
            port = bound.getsockname()[1]
            if self._access.hears_anybody and not is_loopback(own.host):
                log.warning("automation_unguarded", host=own.host, unblock="set automation.token_file")
            app = create_app(self._store, self._episodes, self._runbooks, self._metrics, self._access, self._page)
            server = _Server(quiet_config(app, _LAST_ANSWERS_S), self._access.web, self._access.renewals)
            server.leaving = self._feed.end
            loop = asyncio.get_running_loop()
            loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="store"))
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, server.leave)
            await self._say_what_is_there()
            for part in self._parts:
                await part.start()
            log.info("automation_serves", host=own.host, port=port, queue=self._settings.queue)
            try:
                await server.serve(sockets=[bound])
            finally:
                await self.stop()

    async def stop(self) -> None:
        for part in reversed(self._parts):
            await part.stop()
        self._access.close()
        self._board.close()
        self._everywhere.close()
        self._store.close()

    async def _note_audit(self) -> None:
        """Log the audit log's last hash: kept outside the server, it proves every entry up to it."""
        ends = await asyncio.to_thread(self._store.audit_ends)
        if ends.number:
            log.info("audit_head", queue=self._settings.queue, noted=f"{ends.number}:{ends.hash}")

    async def _say_what_is_there(self) -> None:
        """Say at start what would otherwise surprise later: no queue, or no Redis."""
        try:
            telemetry = await asyncio.to_thread(self._store.observe)
            found = await asyncio.to_thread(weaknesses, self._store)
        except StoreError as error:
            log.warning("store_unavailable", error=str(error))
            return
        self._metrics.preflight.set(len(found))
        if not telemetry.gate.initialised:
            log.warning("queue_uninitialised", queue=telemetry.queue, unblock=opening(telemetry))


def _reconciling(store: Store, settings: Settings) -> Loop:
    reconciler = Reconciler(store, settings.reconcile)

    async def turn() -> None:
        await reconciler.turn()

    return Loop("reconciler", settings.reconcile.every_s, turn)


class _Server(FollowingServer):
    """Leave signals to the one who started the server."""

    leaving: Callable[[], None] | None = None

    def leave(self) -> None:
        """Stop serving; `leaving` is called first, for streams that would otherwise never end."""
        if self.leaving is not None:
            self.leaving()
        self.should_exit = True

    def install_signal_handlers(self) -> None:
        return
