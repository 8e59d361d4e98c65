"""Which commands run inside Redis? One function library in Lua, a file a command or a family of them."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources

VERSION = "v2"
LIBRARY = f"sluicegate_{VERSION}"

# Shared pieces first: later files use the tables that earlier ones fill.
_ORDER = (
    "_base",
    "_audit",
    "_gate",
    "_jobs",
    "_ranks",
    "_figures",
    "_observe",
    "_backlog",
    "_runs",
    "_portable",
    "init",
    "admit",
    "claim",
    "settle",
    "lease",
    "sweep",
    "control",
    "order",
    "run",
    "beside",
    "hold",
    "all_queues",
    "notices",
    "unresolved",
    "snapshot",
    "restore",
    "failures",
    "episode",
    "keys",
)


_ADDS_JOBS = frozenset({"admit", "restore_begin", "restore"})


@cache
def body() -> str:
    """Give the source of all commands, without their registration."""
    folder = resources.files(__name__)
    return "\n".join((folder / f"{name}.lua").read_text(encoding="utf-8") for name in _ORDER)


@cache
def command_names() -> tuple[str, ...]:
    """Give every command's name, in the order of the files."""
    return tuple(re.findall(r"^function commands\.(\w+)\(", body(), flags=re.MULTILINE))


@cache
def read_only_names() -> frozenset[str]:
    """Give the commands that never write, as their files declare them."""
    return frozenset(re.findall(r"^readonly\.(\w+) = true$", body(), flags=re.MULTILINE))


@cache
def hot_names() -> frozenset[str]:
    """Give the commands that take their arguments one by one and answer a flat list, as their files declare them."""
    return frozenset(re.findall(r"^hot\.(\w+) = true$", body(), flags=re.MULTILINE))


def _flag(command: str) -> str:
    """Give the flag a command runs under.

    Reads may run on replicas and by users that cannot write. With memory full a queue must still settle, expire and
    close, so only what adds jobs is refused then.
    """
    if command in read_only_names():
        return "no-writes"
    return "" if command in _ADDS_JOBS else "allow-oom"


@cache
def library() -> str:
    """Give the source that FUNCTION LOAD takes; loading runs without `pairs`, so each registration is written out."""
    names = [(name, function_name(name)) for name in command_names()]
    names += [(name, reading_name(name)) for name in command_names() if name in read_only_names()]
    registrations = "\n".join(_registration(command, name) for command, name in names)
    return f"#!lua name={LIBRARY}\n{body()}\n{registrations}\n"


def digest_of(source: str) -> str:
    """Give a library's fingerprint: 16 hex digits of the SHA-256 of its source."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def _registration(command: str, name: str) -> str:
    flags = f"'{_flag(command)}'" if _flag(command) else ""
    return (
        f"redis.register_function({{ function_name = '{name}', flags = {{ {flags} }}, "
        f"callback = function(_, args) return {_call(command, 'args')} end }})"
    )


@cache
def script(command: str, *, read_only: bool) -> str:
    """Give the same command as a script, for servers or users to which FUNCTION is forbidden."""
    flag = "no-writes" if read_only else _flag(command)
    shebang = f"#!lua flags={flag}\n" if flag else "#!lua\n"
    return f"{shebang}{body()}\nreturn {_call(command, 'ARGV')}\n"


def _call(command: str, arguments: str) -> str:
    answer = "answer_list" if command in hot_names() else "answer_json"
    return f"{answer}(commands.{command}, {arguments})"


def function_name(command: str) -> str:
    """Give the versioned name a command is registered under."""
    return f"{LIBRARY}_{command}"


@cache
def reading_name(command: str) -> str:
    """Give the name a reader calls, which can't load its own code: under it is this very source or nothing."""
    return f"{function_name(command)}_{digest_of(body())}"
