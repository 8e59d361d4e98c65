"""A drill's processes: none outlives the drill, however the drill ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drill.child import ChildDied
from drill.children import Children, NotReady
from drill.folder import PREFIX, keep_folder, remove_stale_folders, started_at
from drill.ports import free_port, listening_socket, listens_on
from drill.watchdog import read_stat
from sluicegate.errors import SluicegateError, UsageError

REPOSITORY = Path(__file__).parents[2]
GONE_WITHIN_S = 5.0
SLEEPER = (sys.executable, "-S", "-c", "import time; time.sleep(600)")
STUBBORN = (
    sys.executable,
    "-S",
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
)
# Writes its own children's pids to its log: one in its session, one in a session of its own.
FAMILY = (
    "import subprocess, time\n"
    "for apart in (False, True):\n"
    "    print('pid', subprocess.Popen(['sleep', '600'], start_new_session=apart).pid, flush=True)\n"
    "time.sleep(600)"
)
WITH_GRANDCHILDREN = (sys.executable, "-S", "-c", FAMILY)
LISTENER = (
    "import socket, sys, time\n"
    "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
    "s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); time.sleep(600)"
)
# A drill: starts children, tells their pids, then waits to be killed.
DRILL = (
    "import sys, time, pathlib\n"
    "from drill.children import Children\n"
    "from tests.contract import test_children as t\n"
    "children = Children(root=pathlib.Path(sys.argv[1]))\n"
    "children.start()\n"
    "children.spawn('family', t.WITH_GRANDCHILDREN)\n"
    "children.spawn('stubborn', t.STUBBORN)\n"
    "children.spawn('suspended', t.SLEEPER)\n"
    "children.suspend('suspended')\n"
    "pids = [*children.pids().values(), *t.grandchildren(children, 'family')]\n"
    "print(children.folder, *pids, flush=True)\n"
    "time.sleep(600)"
)


def eventually(condition: Callable[[], bool], within_s: float = GONE_WITHIN_S) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def lives(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat.state not in "ZX"


def grandchildren(children: Children, name: str) -> list[int]:
    log = children.log_path(name)
    assert eventually(lambda: log.read_text().count("pid") == 2)
    return [int(line.split()[1]) for line in log.read_text().splitlines()]


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """Own processes below a temporary folder of this test alone."""
    with Children(root=tmp_path, stop_grace_s=0.5) as children:
        yield children


def start_drill(root: Path) -> tuple[subprocess.Popen[str], Path, list[int]]:
    drill = subprocess.Popen(
        [sys.executable, "-c", DRILL, str(root)], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    assert drill.stdout is not None
    folder, *pids = drill.stdout.readline().split()
    return drill, Path(folder), [int(pid) for pid in pids]


def end_drill(drill: subprocess.Popen[str]) -> None:
    drill.kill()
    drill.wait()
    if drill.stdout is not None:
        drill.stdout.close()


def test_kill_9_of_the_drill_ends_children_and_grandchildren(tmp_path: Path) -> None:
    drill, folder, pids = start_drill(tmp_path)
    assert len(pids) == 5
    assert all(map(lives, pids))
    end_drill(drill)
    assert eventually(lambda: not any(map(lives, pids)))
    assert folder.exists()  # what it left tells what happened; the next start removes it
    with Children(root=tmp_path) as next_drill:
        assert [entry.name for entry in tmp_path.iterdir()] == [next_drill.folder.name]


def test_kill_9_of_the_drill_and_its_watchdog_still_ends_the_direct_children(tmp_path: Path) -> None:
    drill, folder, pids = start_drill(tmp_path)
    os.kill(watchdog_of(folder), signal.SIGKILL)
    end_drill(drill)
    family, stubborn, suspended, *orphans = pids
    assert eventually(lambda: not any(map(lives, (family, stubborn, suspended))))
    remove_stale_folders(tmp_path)
    assert not any(map(lives, orphans))
    assert not folder.exists()


def watchdog_of(folder: Path) -> int:
    (pid,) = (pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_watchdog(pid, folder.name))
    return pid


def is_watchdog(pid: int, mark: str) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return arguments[-2:-1] == [mark.encode()] and b"watchdog.py" in arguments[-3]


def test_the_folder_of_a_living_drill_is_left_alone(tmp_path: Path) -> None:
    drill, folder, pids = start_drill(tmp_path)
    try:
        assert remove_stale_folders(tmp_path) == ()
        assert folder.exists()
        assert all(map(lives, pids))
    finally:
        end_drill(drill)
    assert eventually(lambda: not any(map(lives, pids)))


def test_two_drills_at_once_leave_each_other_alone(tmp_path: Path) -> None:
    with Children(root=tmp_path) as first:
        first.spawn("sleeper", SLEEPER)
        with Children(root=tmp_path) as second:
            assert second.folder != first.folder
            pid = second.spawn("sleeper", SLEEPER)
        assert not lives(pid)
        assert first.is_running("sleeper")
        assert first.folder.exists()


def test_a_folder_whose_pid_was_given_to_another_process_is_stale(tmp_path: Path) -> None:
    started = started_at(os.getpid())
    reused = tmp_path / f"{PREFIX}{os.getpid()}-{int(started) - 1}-abcdefgh"
    alive = tmp_path / f"{PREFIX}{os.getpid()}-{started}-abcdefgh"
    other = tmp_path / "somebody-elses"
    for folder in (reused, alive, other):
        folder.mkdir()
    assert remove_stale_folders(tmp_path) == (reused,)
    assert not reused.exists()
    assert alive.exists()
    assert other.exists()


def test_a_link_in_a_folders_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    (tmp_path / f"{PREFIX}999999999-1-abcdefgh").symlink_to(target)
    assert remove_stale_folders(tmp_path) == ()
    assert target.exists()


def test_a_kept_folder_survives_later_drills_until_all_are_cleaned(tmp_path: Path) -> None:
    children = Children(root=tmp_path)
    children.start()
    children.spawn("sleeper", SLEEPER)
    kept = children.stop(keep=True)
    assert kept is not None
    assert remove_stale_folders(tmp_path) == ()
    assert (kept / "logs" / "sleeper.log").exists()
    assert remove_stale_folders(tmp_path, kept_too=True) == (kept,)
    assert not kept.exists()


def test_keeping_gives_the_folder_a_name_that_no_start_removes(tmp_path: Path) -> None:
    folder = tmp_path / f"{PREFIX}1-1-abcdefgh"
    folder.mkdir()
    assert not keep_folder(folder).name.startswith(PREFIX)


def test_an_unwritable_place_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't make its data folder") as caught:
        Children(root=tmp_path / "missing").start()
    assert "TMPDIR" in caught.value.hint


def test_stop_is_safe_before_start_and_twice(tmp_path: Path) -> None:
    children = Children(root=tmp_path)
    assert children.stop() is None
    children.start()
    pid = children.spawn("sleeper", SLEEPER)
    folder = children.folder
    children.stop()
    children.stop()
    assert not lives(pid)
    assert not folder.exists()
    with pytest.raises(SluicegateError, match="only between start and stop"):
        _ = children.folder


def test_stop_kills_what_does_not_listen_and_what_moved_to_another_session(children: Children) -> None:
    children.spawn("family", WITH_GRANDCHILDREN)
    stubborn = children.spawn("stubborn", STUBBORN)
    assert eventually(lambda: "deaf" in children.log_path("stubborn").read_text())
    pids = [*children.pids().values(), *grandchildren(children, "family")]
    children.stop()
    assert stubborn in pids
    assert not any(map(lives, pids))


def test_stop_ends_the_latest_first(children: Children) -> None:
    note = children.folder.parent / "order"
    code = (
        "import signal, sys, time\n"
        "def end(*_):\n    open(sys.argv[1], 'a').write(sys.argv[2] + '\\n'); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(600)"
    )
    for name in ("first", "second"):
        children.spawn(name, (sys.executable, "-S", "-c", code, str(note), name))
        assert eventually(lambda name=name: "up" in children.log_path(name).read_text())  # type: ignore[misc]
    children.stop()
    assert note.read_text().split() == ["second", "first"]


def test_reports_a_child_that_died_by_itself_with_its_last_words(children: Children) -> None:
    children.spawn("brief", (sys.executable, "-S", "-c", "print('so long'); raise SystemExit(3)"))
    assert eventually(lambda: bool(children.failed()))
    (failure,) = children.failed()
    assert (failure.name, failure.exit_code, failure.last_lines) == ("brief", 3, ("so long",))
    assert "`brief` ended with exit code 3" in str(failure)


def test_reports_a_child_that_somebody_else_killed_but_not_one_that_it_killed_itself(children: Children) -> None:
    victim = children.spawn("victim", SLEEPER)
    children.spawn("asked", SLEEPER)
    children.kill("asked")
    os.kill(victim, signal.SIGKILL)
    assert eventually(lambda: bool(children.failed()))
    assert [(failure.name, failure.exit_code) for failure in children.failed()] == [("victim", -signal.SIGKILL)]
    children.restart("victim")
    assert children.failed() == ()


def test_reports_a_watchdog_that_died_and_still_ends_everything(children: Children) -> None:
    pid = children.spawn("sleeper", SLEEPER)
    os.kill(watchdog_of(children.folder), signal.SIGKILL)
    assert eventually(lambda: bool(children.failed()))
    assert [failure.name for failure in children.failed()] == ["watchdog"]
    late = children.spawn("late", SLEEPER)
    children.stop()
    assert not lives(pid)
    assert not lives(late)


def test_a_child_reaches_loopback_without_the_proxy_of_the_outside_world(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    hosts = ("127.0.0.1", "intranet.example", "b.example")
    code = f"import urllib.request as u; print(*(u.proxy_bypass(host) for host in {hosts}))"
    children.spawn("asks", (sys.executable, "-S", "-c", code))
    assert eventually(lambda: children.log_path("asks").read_text().strip() != "")
    assert children.log_path("asks").read_text().split() == ["True", "True", "False"]


def test_suspends_and_resumes(children: Children) -> None:
    pid = children.spawn("sleeper", SLEEPER)
    children.suspend("sleeper")
    assert eventually(lambda: (stat := read_stat(pid)) is not None and stat.state == "T")
    assert children.is_running("sleeper")
    children.resume("sleeper")
    assert eventually(lambda: (stat := read_stat(pid)) is not None and stat.state != "T")
    children.suspend("sleeper")
    children.end("sleeper")
    assert not lives(pid)


def test_refuses_an_unknown_name_and_one_that_is_taken(children: Children) -> None:
    children.spawn("sleeper", SLEEPER)
    with pytest.raises(SluicegateError, match="There is no process named `sleper`"):
        children.kill("sleper")
    with pytest.raises(SluicegateError, match="`sleeper` runs already"):
        children.spawn("sleeper", SLEEPER)


def test_a_missing_program_is_a_usage_error(children: Children) -> None:
    with pytest.raises(UsageError, match="`/nowhere/at-all` for `ghost` can't be started"):
        children.spawn("ghost", ("/nowhere/at-all",))


def test_a_child_of_a_thread_outlives_the_thread(children: Children) -> None:
    thread = threading.Thread(target=children.spawn, args=("sleeper", SLEEPER))
    thread.start()
    thread.join()
    thread_is_reaped = eventually(lambda: not thread.is_alive())
    assert thread_is_reaped
    # The kernel would have sent its signal by the time another child has started and ended.
    children.spawn("later", (sys.executable, "-c", "pass"))
    assert eventually(lambda: not children.is_running("later"))
    assert children.is_running("sleeper")


def listener(port: int) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", LISTENER, str(port))


def test_takes_another_port_when_somebody_was_faster(children: Children) -> None:
    with listening_socket(0) as taken:
        first_choice = taken.getsockname()[1]
        asked: list[int] = []

        def argv_for(port: int) -> tuple[str, ...]:
            asked.append(port)
            return listener(first_choice if len(asked) < 3 else port)

        port = children.start_listening("listener", argv_for, accepts)
        assert len(asked) == 3
        assert port == asked[-1] != first_choice
        assert accepts(port)


def test_gives_up_when_the_port_that_was_asked_for_is_taken(children: Children) -> None:
    with listening_socket(0) as taken, pytest.raises(ChildDied, match="already in use"):
        children.start_listening("listener", listener, accepts, port=taken.getsockname()[1])


def test_does_not_take_a_strangers_answer_for_its_own_childs(children: Children) -> None:
    # A child that listens nowhere, on a port where somebody else answers at once.
    with listening_socket(0) as strangers, pytest.raises(NotReady, match="`quiet` was not ready within"):
        children.start_listening("quiet", lambda _: SLEEPER, accepts, port=strangers.getsockname()[1], within_s=0.3)
    assert not children.is_running("quiet")


def test_reports_a_child_that_dies_of_something_else_at_once(children: Children) -> None:
    with pytest.raises(ChildDied, match="bad flag"):
        children.start_listening(
            "broken", lambda _: (sys.executable, "-S", "-c", "raise SystemExit('bad flag')"), accepts
        )


def test_restarts_a_listener_on_its_port(children: Children) -> None:
    port = children.start_listening("listener", listener, accepts)
    before = children.pids()["listener"]
    children.kill("listener")
    assert not accepts(port)
    assert children.restart("listener") != before
    assert accepts(port)


def test_tells_whose_a_port_is() -> None:
    with listening_socket(0) as mine:
        port = mine.getsockname()[1]
        assert listens_on(os.getpid(), port) is True
        assert listens_on(os.getppid(), port) is False
    assert listens_on(os.getpid(), free_port()) is False


def test_a_taken_port_is_a_usage_error() -> None:
    with listening_socket(0) as taken, pytest.raises(UsageError, match="address already in use"):
        listening_socket(taken.getsockname()[1])
