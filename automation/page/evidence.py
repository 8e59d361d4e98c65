"""Ask a Prometheus for what the gates of live runs need, while somebody watches; a slow one holds no reading up."""

from __future__ import annotations

from collections.abc import Mapping

from automation.evidence import Prometheus
from automation.looping import Loop
from automation.page.feed import Feed
from automation.page.run import present_steps
from runbooks.context import Context
from runbooks.evidence import NO_EVIDENCE, Evidence
from runbooks.model import Runbook
from sluicegate.settings import Settings

_EVERY_S = 1.0


class PageEvidence:
    """Hold the newest samples; they are forgotten as soon as no step asks for them."""

    def __init__(self, feed: Feed, runbooks: Mapping[str, Runbook], settings: Settings) -> None:
        self.samples: Evidence = NO_EVIDENCE
        self._feed = feed
        self._runbooks = runbooks
        self._settings = settings
        self._prometheus = Prometheus(settings.automation.prometheus_url)
        self._loop = Loop("page-evidence", _EVERY_S, self._turn)

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    async def _turn(self) -> None:
        reading = self._feed.state.reading
        if reading is None or not self._feed.watchers:
            return
        queries = {
            query
            for run, step in present_steps(reading, self._runbooks)
            for query in step.params.queries(Context(self._settings, run))
        }
        self.samples = await self._prometheus.samples(sorted(queries)) if queries else NO_EVIDENCE
