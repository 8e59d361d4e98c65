"""The guide to the automation service: limits, a hold, a report and the audit log, on a queue with a live run."""

from __future__ import annotations

import re
from pathlib import Path

from drill.children import Children
from drill.monitoring import Prometheus
from sluicegate.all_queues import NAME, AllQueues
from tests.automation_parts import Queue
from tests.guides import Guide, Typist


def test_the_guide_is_followed(children: Children, own_queue: Queue, prometheus: Prometheus, tmp_path: Path) -> None:
    run = own_queue.open_run()
    everywhere = AllQueues.connect(own_queue.settings.redis_url, NAME)
    for queue in ("default", "mill", "nightly", "press", "shears"):
        everywhere.permit(queue, run, {"limit": 9, "storm_queues": 5, "storm_ms": 300_000})
    everywhere.close()
    instead = {"NAME": "ann", "20261129T144510-1a2b": run, "http://prometheus:9090": prometheus.url}
    typist = Typist(children, tmp_path, instead=instead, REDIS_URL=own_queue.settings.redis_url)
    with Guide.named("automation") as guide:
        typist.types(guide.next("sluicegate automation limits"))
        typist.types(guide.next("sluicegate automation hold"))
        assert own_queue.history(run).run.held
        typist.types(guide.next("sluicegate automation resume"))
        assert not own_queue.history(run).run.held
        typist.types(guide.next("sluicegate automation report"))
        assert run in (tmp_path / "incidents" / f"{run}.html").read_text(encoding="utf-8")
        kept = re.search(r"(\d+):[0-9a-f]{40}", typist.types(guide.next("sluicegate automation audit verify")))
        assert kept
        typist.types(guide.next("sluicegate automation audit export"))
        typist.puts("4711:8ad1e2b0c9d84f6a7b3c5d1e0f9a8b7c6d5e4f3a", kept[0])
        typist.types(guide.next("sluicegate automation audit verify --file"))
    assert len((tmp_path / "audit.jsonl").read_text(encoding="utf-8").splitlines()) >= int(kept[1])
