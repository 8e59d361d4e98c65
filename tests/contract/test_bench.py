"""The benches run and their figures are sane: short runs on real servers, real producers and real workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.keeping import Kept, keeping
from bench.lab import Lab
from bench.peers.pins import Pin
from bench.processes import family, lives
from bench.side_by_side import Share, measure_round
from bench.subjects import Ours
from tests.queues import wait_until

LIMITED = ("thresholds", "edf-backlog-limit")


@pytest.mark.e2e
@pytest.mark.timeout(240)
def test_a_short_overload_runs_and_its_figures_are_sane(repository: Path, tmp_path: Path) -> None:
    # Divided by five instead of ten: other tests use the machine as well.
    command = [sys.executable, "-m", "bench.overload_bench", "--short", "--out", str(tmp_path)]
    command += ["--policies", "fifo", *LIMITED]
    environment = {**os.environ, "BENCH_FASTER": "5"}
    done = subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, timeout=220, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    runs = {one["policy"]: one for one in json.loads((tmp_path / "overload.json").read_text(encoding="utf-8"))}
    assert set(runs) == {"fifo", *LIMITED}
    for policy, run in runs.items():
        # No slot does more than its time; how much less depends on what else the machine does.
        assert 0.05 < run["in_time"] < 1.05, policy
        assert 0 < run["accepted"] <= run["asked"] <= run["tries"], policy
    assert runs["fifo"]["accepted"] == runs["fifo"]["asked"], "nothing is refused without a limit"
    for policy in LIMITED:
        assert runs[policy]["accepted"] < 0.7 * runs[policy]["asked"], "at 4× three of four are too many"
    assert (tmp_path / "overload.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_snapshot_and_a_restore_are_measured_beside_the_servers_own() -> None:
    snapshot, restored = keeping(Kept(300, 1), lambda _: None)
    assert (snapshot.name, restored.name) == ("snapshot", "restore")
    assert all(sample > 0 for sample in (*snapshot.samples, *restored.samples))
    assert [bound.name for bound in snapshot.also] == ["bytes", "others wait"]
    assert all(bound.samples and bound.samples[0] > 0 for bound in snapshot.also)


def test_a_round_of_our_own_queue_is_measured_to_its_last_confirmation(tmp_path: Path) -> None:
    with Lab() as lab:
        ours = Ours(lab)
        figures = measure_round(lab, ours, Pin("sluicegate", (), jobs=100, picked=3), Share(), tmp_path)
        assert ours.left() == 0
        assert int(lab.client.hget("counters", "met")) == 104, "a hundred, and four that were picked up"
        ours.close()
    assert min(figures.one_by_one, figures.end_to_end, figures.worker_us, figures.pick_up_ms, figures.bytes_a_job) > 0
    assert figures.enqueue == max(figures.one_by_one, figures.at_once or 0)


def test_the_family_of_a_process_is_what_descends_from_it() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 30 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        found = family(parent.pid)
        os.kill(child, signal.SIGTERM)
        parent.wait(10)
    assert found == [parent.pid, child]


def test_what_the_bench_has_started_dies_with_it() -> None:
    program = "from bench.lab import Lab; lab = Lab(); print(lab._process.pid, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as bench:
        assert bench.stdout is not None
        server = int(bench.stdout.readline())
        assert lives(server)
        bench.kill()
        wait_until(lambda: not lives(server), "the server to be gone")
