"""What the guides tell a reader to type: a test follows each of them, from its first command to its last."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import textwrap
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from drill.children import Children

REPOSITORY = Path(__file__).parents[1]
GUIDES = REPOSITORY / "docs" / "guides"
# All unit tests of the rules, on a machine that other tests keep busy.
WITHIN_S = 200.0
# The address of the queue's server in the guides.
GUIDES_URL = "redis://127.0.0.1:6379/0"
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_STRAY = re.compile(r"^\s*(?:\$ |sluicegate |make )", re.MULTILINE)
_ALL_SLOW = re.compile(r"^pytestmark = .*\bpytest\.mark\.slow\b", re.MULTILINE)
# What differs from run to run in what a command says, and in what a guide shows of it.
_VOLATILE = (
    (r"\b\d{8}T\d{6}-[0-9a-f]{4}\b", "RUN"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "INSTANT"),
    (r"\b\d+:[0-9a-f]{40}\b", "NUMBER:HASH"),
    (r"\bEntries 1 to \d+", "Entries 1 to N"),
)


@dataclass(frozen=True)
class Typed:
    """Hold one command as a guide has it, and what the guide shows below it."""

    line: str
    shown: tuple[str, ...] = ()


def blocks(text: str, *languages: str) -> Iterator[str]:
    """Give the blocks of code in these languages."""
    for found in FENCE.finditer(text):
        if found[2] in languages:
            yield found[3]


def settings_text(url: str) -> str:
    """Give the settings file of the guide to a queue of one's own, for the queue at this address."""
    page = (GUIDES / "your-queue.md").read_text(encoding="utf-8")
    (text,) = [block for block in blocks(page, "yaml") if "contract:" in block]
    assert GUIDES_URL in text
    return text.replace(GUIDES_URL, url)


def typed(text: str) -> Iterator[Typed]:
    """Give the commands of a page: in its blocks `console`, what stands after `$ `, with the lines it goes on in."""
    for block in blocks(text, "console"):
        for part in re.split(r"^\$ ", textwrap.dedent(block).replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            line, *shown = part.splitlines()
            yield Typed(line, tuple(shown))


def strays(text: str) -> list[str]:
    """Give the lines of other blocks that look like commands: nothing would notice that no test types them."""
    others = (found[3] for found in FENCE.finditer(text) if found[2] != "console")
    return [line for block in others for line in block.splitlines() if _STRAY.match(line)]


class Guide:
    """Hold what is left to type of a guide; at the end of its block nothing may be."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._left = deque(typed(text))

    @classmethod
    def named(cls, name: str) -> Self:
        return cls(name, (GUIDES / f"{name}.md").read_text(encoding="utf-8"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            left = "\n".join(command.line for command in self._left)
            assert not left, f"no test types these commands of the guide {self._name}:\n{left}"

    def next(self, beginning: str) -> Typed:
        """Give the next command, which must begin so: whoever follows knows what it does."""
        command = self._left.popleft() if self._left else Typed("nothing more")
        assert command.line.startswith(beginning), f"{self._name} says `{command.line}`, not `{beginning} …`"
        return command


def unfollowed(guides: Path, tests: Path) -> list[str]:
    """Name the guides with commands that no test follows which is run by `make test`."""
    followed = {name for path in tests.rglob("test_*.py") for name in _followed_in(path.read_text(encoding="utf-8"))}
    pages = {page.stem: page.read_text(encoding="utf-8") for page in sorted(guides.glob("*.md"))}
    return [name for name, text in pages.items() if any(typed(text)) and name not in followed]


def _followed_in(text: str) -> Iterator[str]:
    if "Guide.named(" not in text or _ALL_SLOW.search(text):
        return
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef) and not _is_slow(function):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "Guide.named":
                    yield ast.literal_eval(call.args[0])


def _is_slow(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "pytest.mark.slow" for decorator in function.decorator_list)


class Typist:
    """Type a guide's commands into a shell, in a folder, with a test's own addresses where the guide has others."""

    def __init__(self, children: Children, folder: Path, *, instead: Mapping[str, str], **environment: str) -> None:
        self._children = children
        self._folder = folder
        self._instead = dict(instead)
        own = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": own, "COLUMNS": "200", **environment}

    def puts(self, guides: str, own: str) -> None:
        """Say what stands for what the guide has from here on."""
        self._instead[guides] = own

    def types(self, command: Typed, code: int = 0) -> str:
        """Type it and wait for its end; gives what it said, which must be what the guide shows."""
        line = self.filled(command.line)
        exported = re.match(r"export (\w+)=", line)
        done = self._run(f"{line}\nprintenv {exported[1]}" if exported else line)
        said = done.stdout + done.stderr
        assert done.returncode == code, f"{command.line} ends with {done.returncode}: {said}"
        if exported:
            self._environment[exported[1]] = done.stdout.rstrip("\n")
        lines = [stable(line) for line in said.splitlines()]
        missing = [line for line in command.shown if stable(line) not in lines]
        assert missing == [], f"{command.line} does not say what the guide shows: {said}"
        return said

    def tries(self, command: Typed) -> str:
        """Type it, and give what it said, '' where it failed: for what takes a moment to be so."""
        done = self._run(self.filled(command.line))
        return done.stdout if done.returncode == 0 else ""

    def starts(self, name: str, command: Typed) -> None:
        """Type what serves until it is stopped; it ends with the test."""
        line = f"cd {self._folder} && exec {self.filled(command.line)}"
        self._children.spawn(name, ("bash", "-c", line), environment=self._environment)

    def _run(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )

    def filled(self, line: str) -> str:
        """Put the test's own where the guide has others."""
        for guides, own in self._instead.items():
            line = line.replace(guides, own)
        return line


def stable(text: str) -> str:
    """Put a word for whatever differs from run to run."""
    for pattern, word in _VOLATILE:
        text = re.sub(pattern, word, text)
    return text
