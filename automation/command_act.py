"""Start a program that the settings allow: no shell, a cleaned environment, a bounded time and a bounded output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from automation.outside import Came, Outcome
from runbooks.context import Context
from runbooks.verbs.command import Command, allowed
from sluicegate.death_signal import death_signal
from sluicegate.printable import printable
from sluicegate.service_settings import CommandSettings

log = structlog.get_logger(__name__)

# What is kept of what it prints: the end.
OUTPUT_MOST = 2000
_READ_AT_ONCE = 65_536
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LAST_WORDS_S = 1.0
_NOT_DONE = 1


@dataclass(frozen=True, slots=True)
class Ended:
    """Say how a program ended: its exit code (negative for a signal), None where it was killed for its time."""

    code: int | None
    output: str


class CommandAct:
    """Start one allowed program; exit 0 is success, and one that was killed for its time may have done anything."""

    def __init__(self, params: Command, context: Context, key: str) -> None:
        self._params = params
        self._context = context
        self._key = key

    async def make(self) -> Outcome | None:
        try:
            ended = await self._run(self._params.name)
        except OSError as error:
            return Outcome(Came.REFUSED, f"not started: {error.strerror}")
        if ended.code is None:
            log.warning("outcome_unknown", run=self._context.run_id, command=self._params.name, output=ended.output)
            return None
        came = Came.DONE if ended.code == 0 else Came.REFUSED
        return Outcome(came, f"exit {ended.code}" + (f": {ended.output}" if ended.output else ""))

    async def done(self) -> bool | None:
        if self._params.probe is None:
            return None
        try:
            ended = await self._run(self._params.probe)
        except OSError:
            return None
        return {0: True, _NOT_DONE: False}.get(ended.code) if ended.code is not None else None

    async def _run(self, name: str) -> Ended:
        program = allowed(name, self._context)
        told = {
            "SLUICEGATE_RUN_ID": self._context.run_id,
            "SLUICEGATE_QUEUE": self._context.settings.queue,
            "SLUICEGATE_IDEMPOTENCY_KEY": self._key,
        }
        return await run_program(program, {**environment_of(program, os.environ), **told})


def environment_of(program: CommandSettings, all_of_it: Mapping[str, str]) -> dict[str, str]:
    """Give what a program gets of the service's environment: PATH and LANG of its own, and what it is allowed."""
    allowed_names = {name: all_of_it[name] for name in program.environment if name in all_of_it}
    return {"PATH": _PATH, "LANG": "C.UTF-8", **allowed_names}


async def run_program(program: CommandSettings, environment: Mapping[str, str]) -> Ended:
    """Run it to its end or its time's; whatever it started in its session is killed with it. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        *program.argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(environment),
        cwd="/",
        start_new_session=True,
        preexec_fn=death_signal(),
    )
    output = bytearray()
    reading = asyncio.create_task(_keep_the_end(process.stdout, output))
    code: int | None = None
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(program.timeout_s):
                code = await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reading, _LAST_WORDS_S)
    return Ended(code, _on_one_line(output))


async def _keep_the_end(stream: asyncio.StreamReader | None, kept: bytearray) -> None:
    while stream is not None and (part := await stream.read(_READ_AT_ONCE)):
        kept += part
        del kept[:-OUTPUT_MOST]


def _on_one_line(output: bytes | bytearray) -> str:
    """Give it on one line, without what would be a command to a terminal."""
    return printable(" ".join(bytes(output).decode("utf-8", "replace").split()))
