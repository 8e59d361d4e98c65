"""A queue that lost its control keys, or whose server is full: each command says which one comes next, and it does."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from sluicegate import keys
from sluicegate.__main__ import dispatch
from tests.contract.test_doctor import settings_for
from tests.queues import OpenQueue, OpenQueueFunction

_APPLY, _OPEN = "sluicegate queue apply --settings FILE", "sluicegate gate open"
CONTROL_KEYS = (keys.SETTINGS, keys.GATE, keys.EPOCH, keys.DRAIN_STATE, keys.ADMISSION)


@pytest.fixture(autouse=True)
def _path_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def commands_in(text: str) -> list[str]:
    """Give apply and open as they are named in a text, in its order."""
    found = re.findall(r"`(sluicegate (?:queue apply|gate open|queue init)[^`]*)`", text)
    return [command.partition(" --as")[0] for command in found]


@pytest.mark.parametrize(
    "lost", [CONTROL_KEYS, (keys.SETTINGS,), (keys.SETTINGS, keys.GATE)], ids=["all", "contract", "both"]
)
def test_after_a_loss_the_hints_lead_through_apply_to_an_open_gate(
    queue: OpenQueue, lost: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job_id = queue.accepted()
    settings = ("--settings", str(settings_for(queue, tmp_path)))
    by_name = ("--as", "ada", "--reason", "all was lost")
    queue.client.delete(*lost)

    assert dispatch(["gate", "show", *settings]) == 0
    assert commands_in(capsys.readouterr().out)[:2] == [_APPLY, _OPEN]
    assert dispatch(["gate", "open", *by_name, *settings]) == 1
    assert commands_in(capsys.readouterr().err)[:2] == [_APPLY, _OPEN]
    assert dispatch(["queue", "init", *by_name, *settings]) == 1
    assert commands_in(capsys.readouterr().err) == [_APPLY, _OPEN]
    assert dispatch(["queue", "doctor", *settings]) == 1
    assert commands_in(capsys.readouterr().out)[:1] == [_APPLY]

    assert dispatch(["queue", "apply", *by_name, *settings]) == 0
    assert dispatch(["gate", "open", *by_name, *settings]) == 0
    assert [job.job_id for job in queue.claim().jobs] == [job_id]


def test_a_full_server_refuses_a_job_with_what_makes_room(
    queue: OpenQueue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--settings", str(settings_for(queue, tmp_path)))
    queue.client.config_set("maxmemory", 1)
    try:
        assert dispatch(["queue", "submit", "lint-fix", "{}", *settings]) == 1
    finally:
        queue.client.config_set("maxmemory", 0)
    sentence, hint = capsys.readouterr().err.splitlines()
    assert sentence.startswith("The server's memory is full, so it takes no new job: ")
    assert "`CONFIG SET maxmemory`" in hint
    assert dispatch(["queue", "submit", "lint-fix", "{}", *settings]) == 0


def test_a_restore_onto_a_full_server_says_how_it_is_completed(
    queue: OpenQueue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--settings", str(settings_for(queue, tmp_path)))
    queue.accepted()
    path = str(tmp_path / "queue.jsonl.gz")
    assert dispatch(["queue", "snapshot", path, *settings]) == 0
    capsys.readouterr()
    words = ["queue", "restore", path, "--as", "ann", "--reason", "a test", *settings]
    queue.client.config_set("maxmemory", 1)
    try:
        assert dispatch(words) == 1
    finally:
        queue.client.config_set("maxmemory", 0)
    sentence, hint = capsys.readouterr().err.splitlines()
    assert sentence.startswith("The server's memory is full, so the restore stopped; what it began stays closed")
    assert "the same command again goes on" in hint
    assert dispatch(words) == 0


def test_a_snapshot_of_lists_that_were_cut_says_that_jobs_may_be_missing(
    open_queue: OpenQueueFunction, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its own check would find the damage as well.
    queue = open_queue(checked=False)
    queue.accepted()
    words = ["queue", "snapshot", str(tmp_path / "queue.jsonl.gz"), "--settings", str(settings_for(queue, tmp_path))]
    assert dispatch(words) == 0
    queue.client.delete(*queue.client.keys("queue:fifo:*"))
    capsys.readouterr()

    assert dispatch(words) == 1
    said = capsys.readouterr()
    assert "holds 0 jobs" in said.out
    assert "lists of jobs were damaged by hand (ready)" in said.err


def test_a_snapshot_of_a_queue_that_is_half_back_says_so_and_takes_no_file_s_place(
    queue: OpenQueue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--settings", str(settings_for(queue, tmp_path)))
    queue.accepted()
    file, other = tmp_path / "queue.jsonl.gz", tmp_path / "other.jsonl.gz"
    assert dispatch(["queue", "snapshot", str(file), *settings]) == 0
    whole = file.read_bytes()
    queue.client.hset("control:gate", "restoring", "0" * 64)
    capsys.readouterr()

    assert dispatch(["queue", "snapshot", str(file), *settings]) == 1
    assert f"is not complete, and {file} may hold what it lacks" in capsys.readouterr().err
    assert file.read_bytes() == whole
    assert dispatch(["queue", "snapshot", str(other), *settings]) == 1
    said = capsys.readouterr()
    assert "holds 1 jobs" in said.out
    assert f"so {other} lacks what it has not put back" in said.err
    restored = ["queue", "restore", str(other), "--as", "ann", "--reason", "a test", "--take-over", *settings]
    assert dispatch(restored) == 0
    assert dispatch(["queue", "snapshot", str(file), *settings]) == 0


def test_a_snapshot_names_the_records_that_it_left_out(
    open_queue: OpenQueueFunction, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = open_queue(checked=False)
    for number in range(9):
        queue.accepted(job_id=f"j{number}")
    for number in range(7):
        queue.client.hset(f"job:j{number}", "deadline", "soon")
    file = tmp_path / "queue.jsonl.gz"

    assert dispatch(["queue", "snapshot", str(file), "--settings", str(settings_for(queue, tmp_path))]) == 1
    said = capsys.readouterr()
    assert "holds 2 jobs" in said.out
    assert "The records of j0, j1, j2, j3, j4, and 2 more were damaged by hand, or are no UTF-8, so" in said.err
    assert f"{file} lacks them" in said.err


def test_a_snapshot_makes_no_folder_for_a_path_that_was_mistyped(
    queue: OpenQueue, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue.accepted()
    file = tmp_path / "bakcup" / "monday" / "queue.jsonl.gz"
    assert dispatch(["queue", "snapshot", str(file), "--settings", str(settings_for(queue, tmp_path))]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"The snapshot {file} cannot be written: there is no folder {file.parent}.")
    assert (said.out, (tmp_path / "bakcup").exists()) == ("", False)
