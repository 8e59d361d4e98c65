"""`sluicegate automation …` as its users call it: what it says, where, and its exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from automation.following import follow
from drill.children import Children
from drill.ports import free_port
from drill.readiness import answers_http
from drill.topology import command
from sluicegate.__main__ import dispatch
from sluicegate.all_queues import AllQueues
from sluicegate.redis_address import ELSEWHERE
from tests.automation_parts import ON_BOTH, RECOVERY, Queue, quick
from tests.unit.runbooks.files import shipped

NAMED = ("--as", "ada", "--reason", "the provider is down")


@pytest.fixture
def queue(redis_url: str, tmp_path: Path) -> Iterator[Queue]:
    queue = Queue(redis_url, quick(tmp_path))
    yield queue
    queue.close()


def in_step(queue: Queue, run: str, seq: int, verb: str, phase: str = "started") -> None:
    """Journal a phase of a step as an executor would."""
    claim = queue.store.claim_run("by-hand", run, "")
    words = {"executor": "by-hand", "run": run, "fence": claim.fence, "request": f"{verb}-{phase}"}
    entry = {"effect": "journal", "seq": seq, "verb": verb, "phase": phase, "text": "by hand", "detail": "{}"}
    assert queue.store.commit_step({**words, **entry}).answer == "moved"


class Terminal:
    """Call commands against one server and hold what they say."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "path", list(sys.path))
        self._url = url
        self._capsys = capsys

    def __call__(self, *words: str, url: str = "") -> tuple[int, str, str]:
        """Give the exit code, stdout and stderr."""
        code = dispatch(["automation", *words, "--redis-url", url or self._url])
        said = self._capsys.readouterr()
        return code, said.out.strip(), said.err.strip()


@pytest.fixture
def terminal(redis_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(redis_url, capsys, monkeypatch)


def test_a_run_is_opened_listed_shown_approved_and_aborted(queue: Queue, terminal: Terminal) -> None:
    assert terminal("runs") == (0, "There is no run yet.", "")
    code, out, err = terminal("run", RECOVERY.name, *NAMED)
    assert (code, err) == (0, "")
    found = re.fullmatch(r"Run (\S+) is open\.", out)
    assert found is not None
    run = found[1]
    assert queue.state() == ("drain", None, None)

    code, out, err = terminal("run", RECOVERY.name, *NAMED)
    assert (code, out) == (1, "")
    assert err.splitlines()[0] == f"Run {run} is live, so no other was opened."
    assert f"sluicegate automation abort {run}" in err

    assert terminal("runs")[1] == f"{run} {RECOVERY.name} running (by person, ada: the provider is down)"
    listed = json.loads(terminal("runs", "--json")[1])
    assert [(one["run_id"], one["state"]) for one in listed] == [(run, "running")]
    shown = terminal("show", run)
    assert shown[0] == 0
    assert "opened" in shown[1].splitlines()[1]
    assert json.loads(terminal("show", run, "--json")[1])["run"]["actor"] == "ada"

    code, out, err = terminal("approve", run, *NAMED)
    assert (code, out) == (1, "")
    assert err == f"Run {run} is before its first step, which waits for no person; nothing was changed."
    code, out, err = terminal("approve", run, "fix", *NAMED)
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        f"Run {run} does not wait for a person at step fix, so nothing was changed.",
        f"`sluicegate automation show {run}` says what it waits for.",
    ]
    assert queue.history(run).approvals == {}
    in_step(queue, run, 4, "fix")
    assert terminal("approve", run, "fix", *NAMED) == (0, f"Step fix of run {run} is approved.", "")
    assert "was approved before" in terminal("approve", run, "fix", *NAMED)[1]

    code, out, err = terminal("abort", run, *NAMED)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"Run {run} is aborted; the gate is drain, pinned (rolled_back)."
    assert "A running automation service" in out.splitlines()[1]
    assert "`sluicegate gate open --end-run --as NAME --reason WHY` ends it without one" in out.splitlines()[1]
    assert queue.state() == ("drain", "rolled_back", "manual_operator_hold")
    code, out, err = terminal("abort", *NAMED)
    assert (code, out) == (1, "")
    assert err.splitlines()[0] == f"Run {run} rolls back already, so nothing was changed."
    assert "A running automation service" in err.splitlines()[1]
    assert terminal("approve", run, "fix", *NAMED)[0] == 1
    assert terminal("runs")[1].endswith("rollback_reason=manual_operator_hold")


@ON_BOTH
def test_the_kill_switch_says_what_it_is_and_rolls_a_live_run_back(queue: Queue, terminal: Terminal) -> None:
    queue.open_run()
    assert terminal("kill-switch", "on", *NAMED) == (0, "The kill switch is on.", "")
    assert queue.look().kill_switch == "ada: the provider is down"
    assert queue.state() == ("drain", "rolled_back", "manual_operator_hold")
    assert terminal("kill-switch", "off", *NAMED) == (0, "The kill switch is off.", "")
    assert queue.look().kill_switch == ""


@ON_BOTH
def test_what_is_not_there_is_said_with_exit_code_1(queue: Queue, terminal: Terminal) -> None:
    for words in (("show", "r-none"), ("approve", "r-none", *NAMED), ("abort", "r-none", *NAMED)):
        code, out, err = terminal(*words)
        assert (code, out) == (1, "")
        assert err.splitlines()[0] == "There is no run r-none."
    code, _, err = terminal("abort", *NAMED)
    assert (code, err.splitlines()[0]) == (1, "There is no live run, so nothing was changed.")


def test_an_uninitialised_server_opens_no_run_and_stays_empty(
    redis_url: str, tmp_path: Path, terminal: Terminal
) -> None:
    code, out, err = terminal("run", RECOVERY.name, *NAMED)
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "There is no queue here yet, so no run was opened.",
        "`sluicegate queue init --settings FILE --as NAME --reason WHY` opens it.",
    ]
    empty = Queue(redis_url, quick(tmp_path), initialised=False)
    assert empty.client.keys("*") == []
    empty.close()


@ON_BOTH
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "drain-and-recovr", *NAMED), "There is no runbook `drain-and-recovr`."),
        (("run", RECOVERY.name, "--as", "ada", "--reason", ""), "--reason is ''"),
        (("run", RECOVERY.name, "--as", "a\nb", "--reason", "x"), "--as is 'a\\nb'"),
        (("run", RECOVERY.name, "--reason", "x"), "Missing option '--as'"),
        (("approve", "r1", "drain", *NAMED), "no step 'drain' waits for a person"),
        (("kill-switch", "maybe", *NAMED), "'maybe' is not one of 'on', 'off'"),
        (("runs", "--limit", "0"), "Invalid value for '--limit'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_sentence_a_hint_and_exit_code_2(
    words: tuple[str, ...], says: str, terminal: Terminal
) -> None:
    code, out, err = terminal(*words)
    assert (code, out) == (2, "")
    assert says in err.splitlines()[0]
    assert len(err.splitlines()) == 2


COMMANDS = {
    "run": ("run", RECOVERY.name, *NAMED),
    "runs": ("runs",),
    "show": ("show", "r1"),
    "approve": ("approve", "r1", "fix", *NAMED),
    "abort": ("abort", *NAMED),
    "kill-switch": ("kill-switch", "on", *NAMED),
    "kill-switch --all-queues": ("kill-switch", "on", "--all-queues", *NAMED),
    "reset-breaker": ("reset-breaker", *NAMED),
    "limits": ("limits",),
    "hold": ("hold", *NAMED),
    "resume": ("resume", "r1", *NAMED),
    "watch": ("watch",),
}


@ON_BOTH
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_server_that_is_down_is_one_sentence_without_its_password(words: tuple[str, ...], terminal: Terminal) -> None:
    port = free_port()
    code, out, err = terminal(*words, url=f"redis://:s3cret@127.0.0.1:{port}/0")
    assert (code, out) == (1, "")
    assert err.startswith(f"The queue's server at redis://***@127.0.0.1:{port}/0 does not answer: ")
    assert err.splitlines()[1:] == [ELSEWHERE]


@ON_BOTH
def test_serve_says_where_it_listens_and_ends_with_code_0_on_sigterm(
    queue: Queue, tmp_path: Path, children: Children
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(yaml.safe_dump(queue.settings.model_dump(mode="json")), encoding="utf-8")
    port = children.start_listening(
        "automation",
        lambda port: command("automation", "serve", "--settings", str(settings), "--port", str(port)),
        answers_http("/readyz"),
    )
    pid = children.pids()["automation"]
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    assert "sluicegate_automation_ticks_total" in text
    assert "drain_state" not in text, "what lives in the queue's server is the exporter's"
    taken = _serve("--settings", str(settings), "--port", str(port))
    assert taken.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}: address already in use" in taken.stderr

    os.kill(pid, signal.SIGTERM)
    child = children._children["automation"]
    assert child.wait_for_exit(5.0)
    assert child.reap() == 0
    said = [json.loads(line) for line in children.log_path("automation").read_text(encoding="utf-8").splitlines()]
    serves = next(event for event in said if event["event"] == "automation_serves")
    assert (serves["port"], serves["queue"]) == (port, "default")
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


@ON_BOTH
def test_serve_refuses_settings_that_no_step_could_use(server: object, tmp_path: Path) -> None:
    body = quick(tmp_path, automation={"fix": {"hook_url": "ftp://fix.example/now"}}).model_dump(mode="json")
    settings = tmp_path / "settings.yaml"
    settings.write_text(yaml.safe_dump(body), encoding="utf-8")
    done = _serve("--settings", str(settings))
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "The hook's URL 'ftp://fix.example/now' is not an http or https address."


def _with_hook(book: dict[str, Any]) -> None:
    book["rollback"]["hooks"] = [{"name": "recreate", "on_unknown": "hold"}]


def _with_condition(book: dict[str, Any]) -> None:
    book["confirm"]["any"] = ["queue_age_p95_seconds >= {{ contract.timings.fix_page_s }}s"]


def _with_whole_time(book: dict[str, Any]) -> None:
    book["max_runtime"] = "{{ contract.timings.fix_timeout_s }}0s"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_with_hook, "The runbook's command 'recreate' is not among automation.commands."),
        (_with_condition, "The runbook's condition 'queue_age_p95_seconds >= {{ contract.timings.fix_page_s }}s"),
        (_with_whole_time, "The runbook's value '{{ contract.timings.fix_timeout_s }}0s' cannot be used"),
    ],
    ids=["a-rollback", "a-look", "the-whole-time"],
)
def test_serve_refuses_what_would_be_found_in_mid_incident(
    change: Callable[[dict[str, Any]], None], said: str, tmp_path: Path
) -> None:
    # No value of a runbook may be longer than a week.
    long = {"fix_page_s": 700_000, "fix_timeout_s": 70_000}
    body = quick(tmp_path, automation={"runbook_dir": str(tmp_path)}, timings=long)
    settings = tmp_path / "settings.yml"
    settings.write_text(yaml.safe_dump(body.model_dump(mode="json")), encoding="utf-8")
    book = shipped("drain-and-recover")
    next(one["fix"] for one in book["steps"] if "fix" in one)["page_every"] = "1m"
    change(book)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(book), encoding="utf-8")
    done = _serve("--settings", str(settings))
    assert done.returncode == 2
    assert done.stderr.startswith(said)


def _serve(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("automation", "serve", *words), capture_output=True, text=True, timeout=30, check=False
    )


def test_what_forbids_runs_is_shown_switched_and_reset_by_name(queue: Queue, terminal: Terminal) -> None:
    assert terminal("kill-switch", "on", "--all-queues", *NAMED) == (0, "The kill switch of all queues is on.", "")
    assert terminal("kill-switch", "on", *NAMED)[0] == 0
    with closing(AllQueues.over(queue.settings)) as everywhere:
        for name in ("mill", "press"):
            everywhere.permit(name, "run-1", {"limit": 9, "storm_queues": 2, "storm_ms": 60_000})
        everywhere.kill_switch(on=False, actor="ada", reason="a test")
        for name in ("mill", "press"):
            everywhere.permit(name, f"of-{name}", {"limit": 9, "storm_queues": 3, "storm_ms": 60_000})
        everywhere.permit("shears", "r", {"limit": 9, "storm_queues": 3, "storm_ms": 60_000})

    code, said, _ = terminal("limits")
    assert code == 0
    lines = said.splitlines()
    assert lines[0] == "kill switch of queue default: on (ada: the provider is down)"
    assert lines[1] == "kill switch of all queues: off"
    assert re.fullmatch(r"breaker: on since \S+Z \(3 queues asked for a run within 60 s\)", lines[2])
    assert {line.partition(",")[0] for line in lines[3:5]} == {
        "live: run of-mill of queue mill",
        "live: run of-press of queue press",
    }
    assert lines[5] == "asked for runs lately: mill, press, shears"
    body = json.loads(terminal("limits", "--json")[1])
    assert (body["all_queues"]["kill"], body["kill_switch"]) == (None, "ada: the provider is down")

    assert terminal("reset-breaker", *NAMED)[0] == 0
    code, _, said = terminal("reset-breaker", *NAMED)
    assert (code, said) == (1, "The breaker has not tripped, so nothing was changed.")
    assert terminal("kill-switch", "off", "--all-queues")[0] == 2


def test_a_live_run_is_held_for_a_time_and_resumed(queue: Queue, terminal: Terminal) -> None:
    nobody = "There is no live run, so nothing was changed."
    for words in (("hold", *NAMED), ("resume", *NAMED)):
        assert terminal(*words)[0::2] == (1, f"{nobody}\n`sluicegate automation runs` lists the runs.")
    run = queue.open_run()
    code, said, _ = terminal("hold", "--for", "10m", *NAMED)
    assert code == 0
    assert re.fullmatch(rf"Run {run} is held until \S+Z\. Then it rolls back, .*", said)
    assert "held until" in terminal("runs")[1]
    code, _, said = terminal("hold", "--for", "10", *NAMED)
    assert code == 2
    assert said.startswith("--for '10' is no time: not a duration with a unit")
    assert terminal("resume", run, *NAMED) == (0, f"Run {run} goes on.", "")
    assert terminal("resume", *NAMED)[2] == f"Run {run} is not held, so nothing was changed."
    assert terminal("hold", "another", *NAMED)[0] == 1


def test_a_run_is_followed_until_it_has_ended_and_its_end_is_the_exit_code(queue: Queue, terminal: Terminal) -> None:
    assert terminal("watch") == (1, "", "There is no run to watch.")
    assert terminal("watch", "nowhere")[2] == "There is no run nowhere."
    run = queue.open_run()
    said: list[str] = []

    def meanwhile(_seconds: float) -> None:
        """Bring the run on between two looks."""
        if len(said) == 2:
            in_step(queue, run, 1, "freeze")
        else:
            queue.store.order("open_end_run", "ada", "it is mended")

    assert follow(queue.store, None, said.append, meanwhile) == "aborted"
    assert said[0].startswith(f"{run} drain-and-recover running (by person")
    assert sum("freeze" in line and "started" in line for line in said) == 1
    assert "aborted" in said[-1]
    code, out, _ = terminal("watch", run)
    assert code == 1
    assert out.splitlines()[1:] == [line for line in said if line.startswith(" ")]
