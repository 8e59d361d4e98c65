"""The automation service settles unknown jobs by itself, and leaves alone what nobody can tell."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluicegate.job import CallKind, Job, Outcome
from tests.queues import OpenQueue, wait_until


def serve(queue: OpenQueue, folder: Path, **reconcile: Any) -> subprocess.Popen[bytes]:
    body = {
        "redis_url": queue.url,
        "contract": queue.contract.model_dump(mode="json"),
        "automation": {"port": 0, "snapshot_dir": str(folder)},
        "reconcile": {"every_s": 0.1, "after_s": queue.contract.timings.call_timeout_max_s, **reconcile},
    }
    path = folder / "sluicegate.yaml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps(body))), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "sluicegate", "automation", "serve", "--settings", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def vanished(queue: OpenQueue, job_class: str) -> Job:
    job = queue.started(job_class, deadline_s=600)
    queue.settle(job, Outcome.UNKNOWN, kind=CallKind.DROPPED)
    return job


@pytest.mark.parametrize("automatic", [True, False])
def test_it_settles_what_can_be_told_after_the_longest_call_and_nothing_else(
    queue: OpenQueue, tmp_path: Path, automatic: bool
) -> None:
    keyed, unsafe = vanished(queue, "lint-fix"), vanished(queue, "send-mail")
    longest_ms = queue.contract.timings.call_timeout_max_s * 1000
    since = queue.client.zscore("queue:unknown", keyed.job_id)
    service = serve(queue, tmp_path, automatic=automatic)
    try:
        if automatic:
            wait_until(lambda: queue.state(keyed.job_id) == "ready", "the keyed job's return", 30)
            (entry,) = queue.log("reconcile")
            assert (entry["actor"], entry["job"]) == ("ledger", keyed.job_id)
            assert int(entry["at"]) >= since + longest_ms
        else:
            late = since + 2 * longest_ms
            wait_until(lambda: int(queue.client.get("control:seen") or 0) > late, "the controller's looks", 30)
            assert queue.state(keyed.job_id) == "unknown"
        assert queue.state(unsafe.job_id) == "unknown"
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(20) == 0
