"""Wire what tells people: one watch a process, one sender a receiver."""

from __future__ import annotations

from automation.controller import Controller
from automation.looping import Service
from automation.metrics import AutomationMetrics
from automation.names import process_id
from automation.notices.sender import Sender
from automation.notices.watch import Watch
from sluicegate.clock import Clock
from sluicegate.notice import NoticeKind
from sluicegate.notice_board import NoticeBoard
from sluicegate.service_settings import ReceiverKind, ReceiverSettings
from sluicegate.settings import Settings

# No receiver that a person names is called so: a name has no space.
_SILENCES = "silences of runs"
_OVER = (NoticeKind.REOPENED, NoticeKind.ROLLED_BACK, NoticeKind.ENDED)


def telling(
    board: NoticeBoard, controller: Controller, settings: Settings, clock: Clock, metrics: AutomationMetrics
) -> list[Service]:
    """Give the parts; without receivers nothing is read, and the last notices are kept for whoever looks."""
    consumer = process_id("notices")

    def leads() -> bool:
        return controller.seen is not None

    watch = Watch(board, lambda: controller.seen, settings.contract.timings.page_repeat_s, clock)
    told = dict(settings.automation.receivers)
    if settings.automation.alertmanager_url is not None:
        told[_SILENCES] = ReceiverSettings(
            kind=ReceiverKind.ALERTMANAGER, url=settings.automation.alertmanager_url, tells=_OVER
        )
    senders = (Sender(name, receiver, board, consumer, leads, metrics, clock) for name, receiver in told.items())
    return [watch, *senders]
