"""Programs that a test starts beside its own process, as users write them: a supervisor with a child, a fragile worker.

`python -m tests.other_programs NAME URL …`
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from sluicegate.job import Call, CallKind, Job
from sluicegate.settings import WorkerSettings
from sluicegate.store import Store
from sluicegate.worker import Worker

SUPERVISOR, CHILD, FRAGILE = "supervisor", "child", "fragile"
POISON = '{"kills":true}'
_RENEW_EVERY_S = 0.1
_WAITS_AT_MOST_S = 60.0


def command(name: str, *words: str) -> tuple[str, ...]:
    """Return the command line of one of these programs."""
    return (sys.executable, "-m", "tests.other_programs", name, *words)


def supervise(url: str, folder: Path) -> None:
    """Claim a job, let a child of its own session do it, write down the child's pid, and keep the lease."""
    store = Store.connect(url)
    (job,) = store.claim("supervisor", "r1", 1).jobs
    assert store.intent("supervisor", job.job_id, job.fence) == "go"
    child = subprocess.Popen(command(CHILD, url, str(folder), job.job_id, str(job.fence)), start_new_session=True)
    (folder / "child.pid").write_text(str(child.pid))
    while child.poll() is None:
        store.renew("supervisor", {job.job_id: job.fence})
        time.sleep(_RENEW_EVERY_S)


def work_on(url: str, folder: Path, job_id: str, fence: str) -> None:
    """Work until told that it is done, whatever became of the supervisor, then settle under the fence it was given."""
    end = time.monotonic() + _WAITS_AT_MOST_S
    while not (folder / "done").exists() and time.monotonic() < end:
        time.sleep(0.02)
    arguments = {"worker": "supervisor", "id": job_id, "fence": fence, "request": "the child's", "outcome": "succeeded"}
    settled = Store.connect(url).settle({**arguments, "call": {"kind": "ok", "status": 200, "latency_ms": 10}})
    (folder / "answer.part").write_text(f"{settled.answer} {settled.state}")
    (folder / "answer.part").rename(folder / "answer")


async def _fragile(url: str) -> None:
    async def handle(job: Job, timeout_s: float) -> Call:
        if job.payload == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(0.02)
        return Call(CallKind.OK, 0.02, 200)

    await Worker(Store.connect(url), handle, WorkerSettings(max_inflight=1, sweep_ms=50), worker_id="fragile").run()


def main(name: str, url: str, *words: str) -> None:
    if name == SUPERVISOR:
        supervise(url, Path(words[0]))
    elif name == CHILD:
        work_on(url, Path(words[0]), *words[1:])
    else:
        asyncio.run(_fragile(url))


if __name__ == "__main__":
    main(*sys.argv[1:])
