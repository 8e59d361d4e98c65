"""A queue's name that was mistyped: no command takes what is not there for something that is quiet or was done."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import redis

from drill.server import QueueServer
from sluicegate import functions, keys
from sluicegate.__main__ import WORDS, dispatch
from tests.cli.live import open_default_queue
from tests.cli.test_help import commands, sluicegate
from tests.queues import OpenQueue, OpenQueueFunction

NAMED = ("--as", "ada", "--reason", "a test")
RECOVERY = "drain-and-recover"
NOT_OPEN = "Queue nightli is not open here, so nothing is known of it."
HINT = "Another queue may be meant (--queue NAME); else `sluicegate queue init --settings FILE --as NAME --reason WHY`."

# Each ends with exit code 1 and this one sentence, and prints nothing else.
REFUSES = {
    "queue stats": (),
    "queue unknown": (),
    "queue blocked": (),
    "gate log": (),
    "automation runs": (),
    "automation kill-switch": ("on", *NAMED),
    "automation audit verify": (),
    "automation audit export": (),
}
# Each ends with exit code 1 and a sentence of its own.
FAILS = {
    "queue apply": ("There is no queue nightli yet.", ("--settings", "mine.yaml", *NAMED)),
    "queue submit": ("is refused: admission_closed.", ("lint-fix", "{}")),
    "queue show": ("Queue nightli has no job j1.", ("j1",)),
    "queue reconcile": ("Queue nightli has no job j1.", ("j1", *NAMED)),
    "queue retry": ("Queue nightli has no job j1.", ("j1", *NAMED)),
    "queue fail": ("Queue nightli has no job j1.", ("j1", *NAMED)),
    "queue snapshot": ("Queue nightli has no contract: it is not open here", ("s.jsonl.gz",)),
    "gate open": ("The gate of queue nightli can't be read", NAMED),
    "gate hold": ("The gate of queue nightli can't be read", NAMED),
    "gate reject": ("The gate of queue nightli can't be read", NAMED),
    "gate drain": ("The gate of queue nightli can't be read", NAMED),
    "gate release": ("The gate of queue nightli can't be read", NAMED),
    "gate acknowledge": ("The gate of queue nightli can't be read", NAMED),
    "automation run": ("There is no queue here yet, so no run was opened.", (RECOVERY, *NAMED)),
    "automation show": ("There is no run r1.", ("r1",)),
    "automation watch": ("There is no run to watch.", ()),
    "automation approve": ("There is no run r1.", ("r1", *NAMED)),
    "automation hold": ("There is no live run, so nothing was changed.", NAMED),
    "automation resume": ("There is no live run, so nothing was changed.", NAMED),
    "automation abort": ("The gate's records cannot be read, so nothing was changed.", NAMED),
    "automation report": ("There is no run r1.", ("r1",)),
    "automation reset-breaker": ("The breaker has not tripped, so nothing was changed.", NAMED),
    "automation limits": (NOT_OPEN, ()),
}
# Each has something to say without a queue, and says that there is none.
SAYS = {
    "queue settings": ("No contract is in force: queue nightli is not open.", ()),
    "queue doctor": ("Queue nightli is not open.", ()),
    "gate show": ("There is no queue here yet", ()),
    "runbooks plan": ("Queue nightli was never opened", (RECOVERY,)),
    "exporter once": ('sluicegate_gate_initialised{queue="nightli"} 0', ()),
}
# What opens a queue, or is asked of no queue in particular.
NEEDS_NONE = {"queue init", "queue restore", "queue upgrade", "exporter acl", "exporter"}
SERVES = {"queue serve", "exporter serve", "automation serve", "worker run"}


@pytest.fixture
def beside_another(
    redis_server: QueueServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, redis.Redis]:
    """Have a server on which another queue is open; gives its address, and a client."""
    if not redis_server.is_running:
        redis_server.restart()
    client = redis.Redis.from_url(redis_server.url, decode_responses=True)
    client.flushall()
    open_default_queue(redis_server.url)
    (tmp_path / "mine.yaml").write_text("contract: {classes: {lint-fix: {deadline_s: 60}}}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    return redis_server.url, client


def said(command: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run a command on the mistyped queue."""
    line = [*command.split(), *words, "--queue", "nightli"]
    if command.startswith("exporter"):  # it sets the logs of its process up
        done = sluicegate(*line)
        return done.returncode, done.stdout, done.stderr
    code = dispatch(line)
    out, err = capsys.readouterr()
    return code, out, err


def test_every_command_that_takes_a_queue_is_tried_with_one_that_is_not_open() -> None:
    takes = {
        " ".join(path)
        for word in WORDS
        for path, command in commands(word)
        if any("--queue" in one.opts for one in command.params)
    }
    assert takes == {*REFUSES, *FAILS, *SAYS} | NEEDS_NONE | SERVES


@pytest.mark.parametrize("command", REFUSES)
def test_a_queue_that_is_not_open_is_refused_and_nothing_is_written(
    command: str, beside_another: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    _, client = beside_another
    before = set(client.keys("*"))
    code, out, err = said(command, REFUSES[command], capsys)
    assert (code, out) == (1, "")
    assert err.splitlines() == [NOT_OPEN, HINT]
    assert set(client.keys("*")) == before


@pytest.mark.parametrize("command", FAILS)
def test_what_is_not_there_has_its_own_sentence_and_exit_code_1(
    command: str, beside_another: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    sentence, words = FAILS[command]
    code, _, err = said(command, words, capsys)
    assert code == 1
    assert sentence in err


@pytest.mark.parametrize("command", SAYS)
def test_what_is_shown_without_a_queue_says_that_there_is_none(
    command: str, beside_another: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    sentence, words = SAYS[command]
    _, out, err = said(command, words, capsys)
    assert sentence in out + err


@pytest.mark.parametrize("command", ["queue stats", "automation runs", "automation audit verify", "gate log"])
def test_a_script_that_reads_json_gets_none_of_a_queue_that_is_not_open(
    command: str, beside_another: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(command, ("--json",), capsys)[:2] == (1, "")


def test_the_limits_of_all_queues_are_shown_beside_the_refusal(
    beside_another: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said("automation limits", ("--json",), capsys)
    assert code == 1
    assert json.loads(out)["all_queues"]["breaker"] is None
    code, out, _ = said("automation limits", (), capsys)
    assert code == 1
    assert "live: no run of any queue" in out


def test_a_watch_of_a_queue_that_is_not_open_ends_at_once(
    beside_another: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said("queue stats", ("--watch",), capsys)
    assert (code, out, err.splitlines()[0]) == (1, "", NOT_OPEN)


def test_no_file_is_made_of_an_audit_log_that_is_none(
    beside_another: tuple[str, redis.Redis], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said("automation audit export", ("--out", "audit.jsonl"), capsys)[0] == 1
    assert not (tmp_path / "audit.jsonl").exists()


def test_a_noted_entry_that_is_gone_with_its_queue_is_a_break(
    beside_another: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said("automation audit verify", ("--noted", f"7:{'a' * 40}"), capsys)
    assert code == 1
    assert "7" in out


def test_the_log_of_all_queues_is_asked_of_no_queue(
    beside_another: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    assert said("automation audit verify", ("--all-queues",), capsys)[0] == 0


def test_what_is_left_of_a_queue_that_was_lost_is_shown_and_its_runs_are_forbidden(
    queue: OpenQueue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its audit log is what is looked for then, and its runs may be live."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    queue.accepted()
    queue.client.delete(keys.SETTINGS, keys.GATE, keys.EPOCH, keys.DRAIN_STATE, keys.ADMISSION)
    there = ("--redis-url", queue.url)
    assert dispatch(["automation", "audit", "verify", *there]) == 0
    assert "are whole" in capsys.readouterr().out
    assert dispatch(["automation", "kill-switch", "on", *NAMED, *there]) == 0
    assert queue.client.get("kill") == "ada: a test"
    # Its jobs are there, and were not counted: they are not shown as none.
    capsys.readouterr()
    assert dispatch(["queue", "stats", *there]) == 1
    assert "`sluicegate queue apply" in capsys.readouterr().err


def test_a_kill_switch_does_not_wait_for_figures_that_can_not_be_read(
    open_queue: OpenQueueFunction, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    queue = open_queue(checked=False)
    queue.client.set("queue:leases", "no list of leases")
    there = ("--redis-url", queue.url)
    assert dispatch(["queue", "stats", *there]) == 1
    assert "WRONGTYPE" in capsys.readouterr().err
    assert dispatch(["automation", "kill-switch", "on", *NAMED, *there]) == 0


def test_an_upgrade_that_no_gate_log_can_name_says_so(
    beside_another: tuple[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    _, client = beside_another
    client.function_load(functions.library() + "\n-- an older one", replace=True)
    code, _, err = said("queue upgrade", NAMED, capsys)
    assert (code, err.strip()) == (
        0,
        "Queue nightli is not open here, so no gate log has who did it and why.",
    )
    assert said("queue upgrade", NAMED, capsys)[::2] == (0, "")


def test_an_upgrade_is_done_where_the_figures_can_not_be_read(
    open_queue: OpenQueueFunction, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    queue = open_queue(checked=False)
    queue.client.set("queue:leases", "no list of leases")
    queue.client.function_load(functions.library() + "\n-- an older one", replace=True)
    assert dispatch(["queue", "upgrade", *NAMED, "--redis-url", queue.url]) == 0
    out, err = capsys.readouterr()
    assert "it was" in out
    assert err == ""
