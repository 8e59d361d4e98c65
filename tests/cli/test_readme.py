"""What README.md and the pages in docs/ tell a reader to type is real, and what is quick of it runs as they say."""

from __future__ import annotations

import asyncio
import fnmatch
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import redis
import typer
import yaml

from drill.children import Children
from drill.scenarios import SCENARIOS
from drill.server import QueueServer, ServerKind, ServerOptions
from drill.topology import command as command_line
from sluicegate.__main__ import WORDS, dispatch
from sluicegate.producer import Producer
from sluicegate.settings import load, parse
from sluicegate.store import Store
from tests.guides import FENCE, GUIDES_URL, blocks, settings_text
from tests.queues import wait_until
from tests.servers import MakeServer

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDE = REPOSITORY / "docs" / "guides" / "your-queue.md"
FIRST_DRILL = REPOSITORY / "docs" / "guides" / "first-drill.md"
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md")), REPOSITORY / "deploy" / "README.md"]
# The fewest commands that a page is known to show: an extraction that finds nothing proves nothing.
FEWEST = {"README.md": 7, "docs/guides/your-queue.md": 30, "docs/guides/rebuild-a-host.md": 7}

# These serve until they are stopped, or take minutes: they are parsed here and run elsewhere.
LONG = (
    ("automation", "serve"), ("automation", "watch"), ("exporter", "serve"), ("queue", "serve"), ("worker", "run"),
    ("drill",),
)  # fmt: skip
# Blocks that hold what is typed, and not only what is shown.
TYPED_LANGUAGES = ("console", "sh", "")
RUN_ID = re.compile(r"\b\d{8}T\d{6}-[0-9a-f]{4}\b")

_TYPED = re.compile(r"^\s*(?:\$ )?(?:docker compose .+ )?(sluicegate .+)$", re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Command:
    """Hold the words after `sluicegate`, and whether the page only names the command: nobody types that much."""

    words: tuple[str, ...]
    is_named_only: bool = False

    def __str__(self) -> str:
        return shlex.join(["sluicegate", *self.words])


SHOW = Command(("gate", "show"))


def prose(text: str) -> str:
    """Give a page without its blocks of code."""
    return FENCE.sub("", text)


def spans(text: str) -> Iterator[str]:
    """Give the code within sentences and tables, each on one line."""
    for found in _SPAN.finditer(prose(text)):
        yield " ".join(found[1].split())


def commands(page: Path) -> list[Command]:
    """Give every command of a page in its order, those of blocks and those of sentences."""
    text = page.read_text(encoding="utf-8")
    found: list[tuple[int, Command]] = []
    for fence in FENCE.finditer(text):
        if fence[2] in TYPED_LANGUAGES:
            block = fence[3].replace("\\\n", "  ")
            found += [(fence.start(3) + typed.start(), Command(words_of(typed[1]))) for typed in _TYPED.finditer(block)]
    for span in _SPAN.finditer(FENCE.sub(lambda fence: " " * len(fence[0]), text)):
        if span[1].startswith("sluicegate "):
            words = words_of(span[1])
            found.append((span.start(), Command(words, is_named_only=not any(w.startswith("-") for w in words))))
    return [command for _, command in sorted(found, key=lambda place: place[0])]


def words_of(line: str) -> tuple[str, ...]:
    """Give the words of a line as a shell would, up to a pipe, with a word for what it would fill in."""
    command = re.split(r" [|>] ", re.sub(r"\$\([^)]*\)", "FILLED", line))[0]
    return tuple(shlex.split(command, comments=True)[1:])


def complaint(command: Command) -> str:
    """Say what the command line would find wrong, or nothing; the command itself is not run."""
    words = list(command.words)
    if words in (["--help"], ["--version"]):
        return ""
    if words[0] not in WORDS:
        return f"{words[0]} is no word"
    # Typer's types say nothing of groups and contexts.
    parsed: Any = typer.main.get_command(import_module(WORDS[words.pop(0)].module).app)
    while words and not words[0].startswith("-") and hasattr(parsed, "commands"):
        if words[0] not in parsed.commands:
            return f"{words[0]} is no command"
        parsed = parsed.commands[words.pop(0)]
    try:
        parsed.make_context("sluicegate", words)
    except typer.TyperException as error:
        is_short_of_something = type(error).__name__ in {"MissingParameter", "NoArgsIsHelpError"}
        said = getattr(error, "format_message", error.__str__)()
        return "" if command.is_named_only and is_short_of_something else f"{type(error).__name__}: {said}"
    except typer.Exit:  # --help
        return ""
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_command_of_a_page_is_a_real_one_with_real_options(page: Path) -> None:
    found = commands(page)
    wrong = [f"{command}: {said}" for command in found if (said := complaint(command))]
    assert wrong == []
    assert len(found) >= FEWEST.get(str(page.relative_to(REPOSITORY)), 0)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("sluicegate gat show", "gat is no word"),
        ("sluicegate gate shew", "shew is no command"),
        ("sluicegate gate show --loud", "NoSuchOption"),
        ("sluicegate gate drain --as ann", "MissingParameter"),
        ("sluicegate automation approve RUN freeze --as ann --reason x", "BadParameter"),
        ("sluicegate drill --seed many", "BadParameter"),
        ("sluicegate gate show more", "unexpected extra argument"),
    ],
)
def test_a_wrong_command_would_be_found(typed: str, said: str) -> None:
    assert said.casefold() in complaint(Command(words_of(typed))).casefold()


def test_every_command_that_writes_the_contract_names_its_file() -> None:
    """Without one they refuse, so no page and no message may send a reader there without it."""
    sources = [
        path
        for part in ("sluicegate", "automation", "runbooks", "rules", "drill", "deploy", "docs")
        for path in sorted((REPOSITORY / part).rglob("*"))
        if path.suffix in {".py", ".md", ".yaml", ".yml", ".j2", ".lua"}
    ]
    typed = [
        (path.name, line)
        for path in [REPOSITORY / "README.md", *sources]
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"sluicegate queue (init|apply) -", line)
    ]
    assert len(typed) >= 6
    assert [found for found in typed if "--settings" not in found[1]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(prose(page.read_text(encoding="utf-8"))):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        led_to = (page.parent / path).resolve() if path else page
        assert led_to.exists(), f"{target} leads nowhere"
        if anchor:
            assert anchor in anchors(led_to), f"{led_to.name} has no heading for {target}"


def anchors(page: Path) -> set[str]:
    """Give the anchors of a page's headings, as forges make them."""
    headings = _HEADING.findall(prose(page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_make_target_of_a_page_exists_and_its_arguments_are_real(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    lines = [line for block in blocks(text, *TYPED_LANGUAGES) for line in block.splitlines()]
    for typed in [*lines, *spans(text)]:
        found = re.match(r"(?:\$ )?make ([a-z-]+)(?: ARGS=\"([^\"]*)\")?", typed.strip())
        if found is None:
            continue
        assert found[1] in targets, typed
        if found[1] == "drill":
            assert complaint(Command(("drill", *shlex.split(found[2] or "")))) == "", typed


def section(page: Path, heading: str) -> str:
    """Give what stands under a heading, up to the next one."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^#+ |\Z)", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found, f"{page.name} has no heading {heading}"
    return found[1]


def test_the_drills_flags_and_scenarios_are_all_described() -> None:
    drill: Any = typer.main.get_command(import_module(WORDS["drill"].module).app)
    flags = {flag for parameter in drill.params for flag in parameter.opts} - {"--help"}
    assert set(re.findall(r"--[a-z][a-z-]*", section(FIRST_DRILL, "Flags"))) == flags
    told = section(FIRST_DRILL, "Other scenarios") + section(FIRST_DRILL, "Failure modes, each alone")
    assert set(re.findall(r"^\| `([a-z-]+)`", told, re.MULTILINE)) == set(SCENARIOS)


@pytest.fixture
def kept_server(make_server: MakeServer) -> QueueServer:
    """Return a server as the guide asks for: it keeps its data."""
    return make_server(ServerOptions(kind=ServerKind.REDIS, append_only=True))


@pytest.fixture
def reader(
    kept_server: QueueServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Reader:
    """Return somebody who types the pages' commands in a folder with the guide's settings file."""
    (tmp_path / "sluicegate.yaml").write_text(settings_text(kept_server.url), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("REDIS_URL", kept_server.url)
    return Reader(capsys)


class Reader:
    """Type the commands of a page, with a name, a reason and a run's id where it says NAME, WHY and RUN."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._run = "20260101T000000-0000"
        self.has_run = False

    def types(self, command: Command) -> tuple[int, str]:
        """Give the exit code and what was said; a run that is opened is the RUN of what comes after."""
        filled = {"NAME": "ann", "WHY": "a test", "RUN": self._run}
        code = dispatch([filled.get(word, word) for word in command.words])
        shown = self._capsys.readouterr()
        said = shown.out + shown.err
        if command.words[:2] == ("automation", "run") and (found := RUN_ID.search(said)):
            self._run, self.has_run = found[0], True
        return code, said


def is_quick(command: Command) -> bool:
    """Tell whether a command can be run as it stands: whole, and over in a moment."""
    is_long = any(command.words[: len(long)] == long for long in LONG)
    return not is_long and complaint(Command(command.words)) == ""


def test_the_readmes_commands_on_a_queue_run_as_they_stand(reader: Reader, tmp_path: Path) -> None:
    quick = [command for command in commands(REPOSITORY / "README.md") if is_quick(command)]
    assert len(quick) >= 4
    for command in quick:
        code, said = reader.types(command)
        assert code == 0, f"{command} exits with {code}: {said}"
    assert (tmp_path / "monitoring" / "sluicegate.rules.yml").is_file()
    assert (tmp_path / "monitoring" / "alertmanager.yml").is_file()


def test_the_guides_commands_run_in_the_guides_order(reader: Reader, children: Children, tmp_path: Path) -> None:
    found = commands(GUIDE)
    assert sum(is_quick(command) for command in found) >= 20
    for command in found:
        if command.words[:2] == ("automation", "serve"):
            children.spawn("automation", command_line(*command.words, "--port", "0"))
            wait_until(lambda: "last decision: admit" in reader.types(SHOW)[1], "the controller's first tick", 30)
        if not is_quick(command):
            continue
        # The section before the night approves a step of no run at all; an abort takes a moment to end its run.
        is_of_no_run = command.words[:2] == ("automation", "approve") and not reader.has_run
        # A run takes a moment to come to its fix, too.
        takes_time = command.words[:2] in {("gate", "release"), ("automation", "approve")}
        end = time.monotonic() + (30 if takes_time else 0)
        while (said := reader.types(command))[0] != int(is_of_no_run):
            assert time.monotonic() < end, f"{command} exits with {said[0]}: {said[1]}"
    made = {path.name for path in (tmp_path / "monitoring").iterdir()}
    cells = re.findall(r"^\| (`[^|]+`) \|", section(GUIDE, "6. Watch"), re.MULTILINE)
    # Where there is a file for each of several things, the page says … for what differs.
    named = [one.removesuffix("/").replace("…", "*") for cell in cells for one in _SPAN.findall(cell)]
    told = {name: fnmatch.filter(made, name) for name in named if name != "monitoring"}
    assert [name for name, found in told.items() if not found] == []
    assert made == {file for found in told.values() for file in found}
    log = reader.types(Command(("gate", "log")))[1]
    orders = {"operator_drain", "operator_reject", "operator_hold", "run_opened", "operator_abort", "operator_release"}
    for order in orders | {"operator_open", "kill_switch_on"}:
        assert re.search(rf" {order} by ann\b", log), f"the log names nobody for {order}: {log}"


def test_a_raw_drain_closes_the_gate_as_the_guide_says(reader: Reader, kept_server: QueueServer) -> None:
    url = kept_server.url
    contract = load(Path("sluicegate.yaml")).contract
    spans_of_guide = list(spans(GUIDE.read_text(encoding="utf-8")))
    assert "SET drain_state drain" in spans_of_guide
    assert "{NAME}:drain_state" in spans_of_guide
    with redis.Redis.from_url(url) as client:
        for queue, key in (("default", "drain_state"), ("other", "{other}:drain_state")):
            store = Store.connect(url, queue)
            assert store.init_queue(contract.for_redis(), contract.digest(), "ann", "a test").answer == "moved"
            store.close()
            client.set(key, "drain")
            code, said = reader.types(Command(("gate", "show", "--queue", queue)))
            assert code == 0
            assert said.startswith(f"The gate of queue {queue} is drain")


def test_only_the_command_closes_the_gate_of_a_full_server(reader: Reader, kept_server: QueueServer) -> None:
    init = words_of('sluicegate queue init --settings sluicegate.yaml --as ann --reason "a test"')
    assert reader.types(Command(init))[0] == 0
    with redis.Redis.from_url(kept_server.url) as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("drain_state", "drain")
    assert reader.types(Command(("gate", "drain", "--as", "ann", "--reason", "full")))[0] == 0
    assert "is drain" in reader.types(SHOW)[1]


def test_the_guides_settings_and_prometheus_files_are_right(tmp_path: Path) -> None:
    body = yaml.safe_load(settings_text(GUIDES_URL))
    settings = parse(body, "the guide")
    (text,) = [block for block in blocks(GUIDE.read_text(encoding="utf-8"), "yaml") if "scrape_configs:" in block]
    config = yaml.safe_load(text)
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in config["scrape_configs"]}
    assert targets[settings.monitoring.exporter_job] == [f"127.0.0.1:{settings.exporter.port}"]
    assert [f"127.0.0.1:{settings.automation.port}"] in targets.values()
    assert config["global"]["scrape_interval"] == f"{settings.monitoring.scrape_interval_s:g}s"
    assert config["global"]["evaluation_interval"] == f"{settings.monitoring.evaluation_interval_s:g}s"
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing; `make setup` installs it"
    (tmp_path / "prometheus.yml").write_text(text, encoding="utf-8")
    checked = subprocess.run(
        [promtool, "check", "config", "--syntax-only", str(tmp_path / "prometheus.yml")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    (snippet,) = blocks((REPOSITORY / "docs" / "guides" / "reconcile-unknown-jobs.md").read_text("utf-8"), "yaml")
    parse({**body, **yaml.safe_load(snippet)}, "the guide")


def snippet(word: str, url: str) -> str:
    """Give the guide's one piece of Python that has a word, for the queue at this address."""
    (text,) = [block for block in blocks(GUIDE.read_text(encoding="utf-8"), "python") if word in block]
    assert GUIDES_URL in text
    return text.replace(GUIDES_URL, url)


@pytest.fixture
def open_url(redis_url: str) -> str:
    """Return the address of a server on which the guide's queue is open, once each kind."""
    contract = parse(yaml.safe_load(settings_text(redis_url)), "the guide").contract
    # These tests start no controller, and a busy machine may take its time.
    contract = contract.model_copy(
        update={"timings": contract.timings.model_copy(update={"controller_silent_s": 3600.0})}
    )
    store = Store.connect(redis_url)
    assert store.init_queue(contract.for_redis(), contract.digest(), "ann", "a test").answer == "moved"
    store.close()
    return redis_url


def test_the_guides_producers_submit(open_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    exec(compile(snippet("decision = producer.submit", open_url), "producer", "exec"), names)  # noqa: S102 (the guide's own text)
    assert names["decision"].accepted
    assert capsys.readouterr().out == ""

    names = {"__name__": "guide"}
    exec(compile(snippet("AsyncProducer", open_url), "async_producer", "exec"), names)  # noqa: S102 (as above)
    asyncio.run(names["submit"]())
    assert "accepted=True" in capsys.readouterr().out


def test_the_guides_worker_does_a_job_and_stops_when_told_to(open_url: str, tmp_path: Path) -> None:
    store = Store.connect(open_url)
    job_id = Producer(store).submit("lint-fix", '{"a": 1}', idempotency_key="guide-1").job_id
    script = tmp_path / "work.py"
    script.write_text(snippet("import Worker", open_url), encoding="utf-8")
    working = subprocess.Popen(
        [sys.executable, "-u", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: (store.job(job_id) or {"job": {}})["job"].get("state") == "succeeded", "the job is done", 30)
        working.send_signal(signal.SIGTERM)
        said, _ = working.communicate(timeout=30)
    finally:
        working.kill()
        store.close()
    assert working.returncode == 0, said
    assert f"working on {job_id}" in said
    assert "worker_stopped" in said
