"""The automation service without its controller and executor, on a free port: `python -m bench.webhook_service FILE`.

It prints its port once it listens.
"""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn

from automation.access import Access
from automation.api import create_app
from automation.episodes import Episodes
from automation.metrics import AutomationMetrics
from automation.opening import Opening
from automation.page.feed import Feed
from automation.page.routes import Page
from automation.service import runbooks_in_force
from sluicegate import logs
from sluicegate.all_queues import AllQueues
from sluicegate.listening import listen
from sluicegate.settings import load
from sluicegate.store import Store
from sluicegate.web.serving import quiet_config


def main() -> None:
    # As in the service, but to nobody: stdout is the port's alone.
    logs.configure(stream=sys.stderr)
    settings = load(Path(sys.argv[1]), {})
    store, runbooks, metrics = Store.of(settings), runbooks_in_force(settings), AutomationMetrics()
    opening = Opening(store, AllQueues.over(settings), lambda queue: Store.of(settings, queue, read_only=True))
    episodes = Episodes(opening, settings, runbooks, metrics)
    page = Page(store, Feed(store, settings.automation.page), runbooks, settings)
    app = create_app(store, episodes, runbooks, metrics, Access(settings.automation), page)
    bound = listen("127.0.0.1", 0, "the bench")
    print(bound.getsockname()[1], flush=True)
    uvicorn.Server(quiet_config(app, 1)).run(sockets=[bound])


if __name__ == "__main__":
    main()
