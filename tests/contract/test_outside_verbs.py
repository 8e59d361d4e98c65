"""A verb of somebody else's, installed as a package: read, shown, checked and carried out like every call outside."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import automation.outside
from runbooks import document
from runbooks.verbs import outside as verbs
from sluicegate.errors import SettingsError
from tests.automation_parts import ON_BOTH, quick, until
from tests.contract.test_automation_verbs import Mine, book, crashed

PACKAGE = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "pigeon-step"
version = "1.0"
[project.entry-points."sluicegate.steps"]
send_pigeon = "pigeon:STEP"
[tool.hatch.build.targets.wheel]
only-include = ["pigeon.py"]
""",
    "pigeon.py": """
from pathlib import Path
from sluicegate.run_steps import NotDone, OutsideCall


class Pigeon:
    schema = {
        "properties": {"to": {"type": "string"}, "mood": {"enum": ["calm", "tired", "lost"]}},
        "required": ["to"],
    }

    def line(self, call: OutsideCall) -> str:
        return f"send a pigeon to {call.parameters['to']} with {call.idempotency_key}"

    def act(self, call: OutsideCall) -> str:
        loft = Path(call.parameters["to"])
        with loft.open("a") as told:
            told.write(call.idempotency_key + "\\n")
        flown = len(loft.read_text().splitlines())
        if call.parameters.get("mood") == "tired" and flown < 2:
            raise NotDone("it would not\\nfly")
        if call.parameters.get("mood") == "lost":
            raise RuntimeError("nobody knows where it is")
        return "it has arrived"

    def probe(self, call: OutsideCall) -> bool | None:
        loft = Path(call.parameters["to"])
        return loft.exists() and call.idempotency_key in loft.read_text()


STEP = Pigeon()
""",
}

STEP = {"timeout": "20s", "on_timeout": "hold"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package beside this project, and return the folder it is in."""
    source, target = tmp_path_factory.mktemp("pigeon"), tmp_path_factory.mktemp("site")
    for name, text in PACKAGE.items():
        (source / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "--target", str(target), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def pigeons(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process see the package."""
    monkeypatch.setattr(automation.outside, "AGAIN_AFTER_S", 0.1)
    with _seen(installed, monkeypatch):
        yield


class _seen:  # noqa: N801 (used like a function)
    """See what is installed in a folder until the block ends."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(folder))

    def __enter__(self) -> None:
        verbs.found.cache_clear()
        document._validator.cache_clear()

    def __exit__(self, *_: object) -> None:
        self.__enter__()
        sys.modules.pop("pigeon", None)


HEAD = """\
apiVersion: sluicegate/v1
runbook: NAME
summary: s.
owner: o
max_runtime: 1h
trigger: {alerts: {runbook: NAME}, target: {queue_label: queue}}
confirm: {any: [unknown_jobs >= 1], no_data: hold}
notify: {when: [ended], to: [log]}
steps:
"""
FILES = {
    "sound": 'to: "/{{ queue }}", on_unknown: probe',
    "no-rule": "to: x",
    "no-address": "on_unknown: hold",
    "wild": "to: x, mood: wild, on_unknown: hold",
}


def test_it_is_read_checked_and_shown_by_the_command_line(installed: Path, tmp_path: Path) -> None:
    for name, step in FILES.items():
        (tmp_path / name).mkdir()
        text = f"{HEAD.replace('NAME', name)}  - send_pigeon: {{{step}, timeout: 10s, on_timeout: hold}}\n"
        (tmp_path / name / f"{name}.yaml").write_text(text, encoding="utf-8")

    def said(*arguments: str, path: str = str(installed)) -> str:
        command = [sys.executable, "-m", "sluicegate", "runbooks", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": path})
        return done.stdout + done.stderr

    checked = said("validate", *(str(tmp_path / name / f"{name}.yaml") for name in FILES))
    assert "sound.yaml: sound" in checked
    assert "external-without-on-unknown" in checked
    assert "steps[0].send_pigeon.to is missing" in checked
    assert "not one of calm, tired, lost" in checked
    shown = said("show", "sound", "--dir", str(tmp_path / "sound"))
    assert "send a pigeon to /default with {run}/send_pigeon; a lost outcome is probed" in shown
    without = said("validate", str(tmp_path / "sound" / "sound.yaml"), path="")
    assert "steps[0].send_pigeon is" in without
    assert "no such field exists" in without


@ON_BOTH
@pytest.mark.usefixtures("pigeons")
@pytest.mark.parametrize(("mood", "calls"), [("calm", 1), ("tired", 2)])
def test_it_is_carried_out_once_and_again_only_where_it_says_that_it_was_not_done(
    mood: str, calls: int, redis_url: str, tmp_path: Path
) -> None:
    loft = tmp_path / "loft"

    async def scenario() -> None:
        mine = book({"send_pigeon": {"to": str(loft), "mood": mood, "on_unknown": "hold", **STEP}})
        async with Mine(redis_url, quick(tmp_path), mine) as parts:
            run = parts.run()
            await parts.until_ended(run, "succeeded")
            assert loft.read_text().splitlines() == [f"{run}/send_pigeon"] * calls
            outcomes = [text for _, text in parts.told(run, "outcome")]
            assert outcomes == ["not done: it would not fly", "it has arrived"][2 - calls :]

    asyncio.run(scenario())


@ON_BOTH
@pytest.mark.usefixtures("pigeons")
def test_what_it_raises_leaves_the_outcome_unknown_and_a_person_passes_the_step(redis_url: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        mine = book({"send_pigeon": {"to": str(tmp_path / "loft"), "mood": "lost", "on_unknown": "hold", **STEP}})
        async with Mine(redis_url, quick(tmp_path), mine) as parts:
            run = parts.run()
            await until(lambda: parts.journal(run, "paged", "send_pigeon"), "a page")
            assert [phase for phase, _ in parts.told(run, "intent", "unknown")] == ["intent", "unknown"]
            parts.approve(run, "send_pigeon")
            await parts.until_ended(run, "succeeded")

    asyncio.run(scenario())


@ON_BOTH
@pytest.mark.usefixtures("pigeons")
def test_after_a_crash_its_probe_is_asked_before_it_is_called_again(redis_url: str, tmp_path: Path) -> None:
    loft = tmp_path / "loft"

    async def scenario() -> None:
        mine = book({"send_pigeon": {"to": str(loft), "on_unknown": "probe", **STEP}})
        async with Mine(redis_url, quick(tmp_path), mine) as parts:
            await parts.executor.stop()
            run = parts.run()
            loft.write_text(f"{run}/send_pigeon\n")
            crashed(parts, run, "send_pigeon")
            await parts.executor.start()
            await parts.until_ended(run, "succeeded")
            assert loft.read_text().splitlines() == [f"{run}/send_pigeon"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("freeze", "pigeon:STEP", "the name of a built-in verb"),
        ("rollback", "pigeon:STEP", "a name that no verb can have"),
        ("Send-Pigeon", "pigeon:STEP", "a name that no verb can have"),
        ("send_dove", "no_such_module:STEP", "cannot be loaded"),
        ("send_dove", "pathlib:Path", "is no OutsideStep"),
    ],
)
def test_what_can_be_no_verb_is_refused_by_name(
    name: str, value: str, match: str, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "dove-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dove\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[sluicegate.steps]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(str(installed))
    with _seen(tmp_path, monkeypatch), pytest.raises(SettingsError, match=match):
        verbs.found()
