"""The wheel adds one top-level name, holds all that its parts read, and runs beside a package called `rules`."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from sluicegate.__main__ import WORDS

# One worker builds and installs once for all of them.
pytestmark = pytest.mark.xdist_group("wheel")

PARTS = ("exporter", "rules", "runbooks", "automation", "dashboards", "drill")
FOREIGN = "rules==3.5"  # django-rules: its top-level name is that of one of our parts


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose failure is this test's failure, with its output in the message."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result


@dataclass(frozen=True)
class Installed:
    """An environment with the foreign package, then the wheel; and the names at top level before and after."""

    folder: Path
    before: frozenset[str]
    after: frozenset[str]

    @property
    def bin(self) -> Path:
        return self.folder / "bin"


def top_level(site_packages: Path) -> frozenset[str]:
    """Return the names that can be imported, and the records of what is installed."""
    return frozenset(path.name for path in site_packages.iterdir() if path.name != "__pycache__")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the sdist, and the wheel from it, so that the sdist is proved complete."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=Path(__file__).resolve().parents[2])
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="module")
def installed(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the foreign `rules`, then the wheel, where our dependencies are seen but this checkout is not."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    (site_packages,) = (folder / "lib").glob("python*/site-packages")
    # A .pth of a whole site-packages adds its folder, but does not follow the .pth of the editable install in it.
    (dependencies,) = {
        str(Path(path)) for path in sys.path if path.endswith("site-packages") and path.startswith(sys.prefix)
    }
    (site_packages / "dependencies.pth").write_text(dependencies + "\n")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
    )
    run(*pip, FOREIGN, cwd=folder)
    before = top_level(site_packages)
    run(*pip, built["wheel"], cwd=folder)
    return Installed(folder, before, top_level(site_packages))


def test_the_only_new_top_level_name_is_sluicegate(installed: Installed) -> None:
    new = installed.after - installed.before
    assert {name for name in new if not name.endswith(".dist-info")} == {"sluicegate"}
    assert len(new) == 2
    assert installed.before <= installed.after


def test_rules_is_still_the_other_package(installed: Installed) -> None:
    script = (
        "import rules; print(rules.__file__); rules.add_rule('may', rules.always_true); print(rules.test_rule('may'))"
    )
    path, answer = run(installed.bin / "python", "-c", script, cwd=installed.folder).stdout.split()
    assert "_app" not in path
    assert Path(path).is_relative_to(installed.folder)
    assert answer == "True"


@pytest.mark.parametrize("word", WORDS)
def test_every_word_shows_its_help_from_the_wheel(installed: Installed, word: str) -> None:
    result = run(installed.bin / "sluicegate", word, "--help", cwd=installed.folder)
    assert f"sluicegate {word}" in result.stdout


def test_a_child_process_finds_the_words_too(installed: Installed) -> None:
    run(installed.bin / "python", "-m", "sluicegate", "rules", "--help", cwd=installed.folder)


def test_the_wheel_holds_every_file_of_the_packages(built: dict[str, Path], repository: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "sluicegate", *PARTS], cwd=repository, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    expected = {name if name.startswith("sluicegate/") else f"sluicegate/_app/{name}" for name in listed}
    packed = set(zipfile.ZipFile(built["wheel"]).namelist())
    assert len(expected) > len(PARTS)
    assert expected <= packed, expected - packed
