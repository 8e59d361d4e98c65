"""The guide to unknown jobs: each word that a person can say settles one."""

from __future__ import annotations

from pathlib import Path

import yaml

from drill.children import Children
from sluicegate.producer import Producer
from sluicegate.submission import Submission
from tests.automation_parts import Queue
from tests.guides import GUIDES, Guide, Typist, blocks, settings_text


def lost(queue: Queue, count: int) -> list[str]:
    """Let jobs become unknown: their worker vanished before its intent."""
    names = [f"change-{number}" for number in range(count)]
    Producer(queue.store).submit_many([Submission(name, "refactor-plan", "{}") for name in names])
    for job in queue.store.claim("gone", "r1", count).jobs:
        base = {"worker": "gone", "id": job.job_id, "fence": str(job.fence), "request": job.job_id}
        queue.store.settle(base | {"outcome": "unknown", "call": {"kind": "dropped", "latency_ms": 1}})
    return names


def test_the_guide_is_followed(children: Children, own_queue: Queue, tmp_path: Path) -> None:
    asked, done, repeated, given_up = lost(own_queue, 4)
    (snippet,) = blocks((GUIDES / "reconcile-unknown-jobs.md").read_text(encoding="utf-8"), "yaml")
    url = own_queue.settings.redis_url
    settings = yaml.safe_load(settings_text(url)) | yaml.safe_load(snippet)
    (tmp_path / "sluicegate.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    typist = Typist(children, tmp_path, instead={"JOB": asked}, REDIS_URL=url)

    def state_of(name: str) -> str:
        record = own_queue.store.job(name)
        assert record is not None
        return str(record["job"]["state"])

    with Guide.named("reconcile-unknown-jobs") as guide:
        assert set(typist.types(guide.next("sluicegate queue unknown")).split()) >= {asked, done, repeated, given_up}
        assert "unknown" in typist.types(guide.next("sluicegate queue show"))
        typist.types(guide.next("sluicegate queue reconcile JOB --settings"))
        assert state_of(asked) == "ready", "it had no intent, so there was no call"
        for name, beginning, state in (
            (done, "sluicegate queue reconcile JOB --outcome succeeded", "succeeded"),
            (repeated, "sluicegate queue retry", "ready"),
            (given_up, "sluicegate queue fail", "failed"),
        ):
            typist.puts("JOB", name)
            typist.types(guide.next(beginning))
            assert state_of(name) == state
