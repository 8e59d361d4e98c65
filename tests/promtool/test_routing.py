"""The generated Alertmanager configuration, judged by the real amtool."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rules.generate import ALERTMANAGER_FILE, catalogue, render_alertmanager, render_all
from rules.routing import AUTOMATION_RECEIVER, HEARTBEAT_RECEIVER, NOBODY_RECEIVER, PAGES_RECEIVER
from sluicegate.generated import write
from sluicegate.settings import default_settings
from tests.unit.rules.settings import ALL


def amtool(*words: str) -> str:
    program = shutil.which("amtool")
    assert program is not None, "amtool is not on the PATH: install the package prometheus-alertmanager"
    answer = subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=30)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.mark.parametrize("name", ALL)
def test_configuration_is_valid(name: str, tmp_path: Path) -> None:
    write(render_all(ALL[name](), tmp_path))

    assert "SUCCESS" in amtool("check-config", str(tmp_path / ALERTMANAGER_FILE))


def test_configuration_with_a_token_file_is_valid(tmp_path: Path) -> None:
    config = tmp_path / ALERTMANAGER_FILE
    config.write_text(render_alertmanager(default_settings(), bearer_token_file=tmp_path / "token"))

    assert "SUCCESS" in amtool("check-config", str(config))
    assert f'credentials_file: "{tmp_path / "token"}"' in config.read_text()


@pytest.mark.parametrize(
    ("alert", "receivers"),
    [
        ("SluicegateQueueAgeCritical", (AUTOMATION_RECEIVER, PAGES_RECEIVER)),
        ("SluicegateProviderErrorsHigh", (AUTOMATION_RECEIVER, PAGES_RECEIVER)),
        ("SluicegateDuplicateSideEffect", (AUTOMATION_RECEIVER, PAGES_RECEIVER)),
        ("SluicegateQueueAgeHigh", (AUTOMATION_RECEIVER,)),
        ("SluicegateTelemetryAbsent", (AUTOMATION_RECEIVER, PAGES_RECEIVER)),
        ("SluicegateGatePinned", (PAGES_RECEIVER,)),
        ("SluicegateWatchdog", (HEARTBEAT_RECEIVER,)),
    ],
)
def test_an_alert_reaches_who_must_hear_it(alert: str, receivers: tuple[str, ...], tmp_path: Path) -> None:
    write(render_all(default_settings(), tmp_path))
    labels = next(one.labels for one in catalogue(default_settings()) if one.name == alert)

    said = amtool(
        "config",
        "routes",
        "test",
        f"--config.file={tmp_path / ALERTMANAGER_FILE}",
        f"alertname={alert}",
        *(f"{name}={value}" for name, value in labels.items()),
    )

    assert tuple(said.strip().split(",")) == receivers


def test_a_stranger_s_alert_reaches_nobody(tmp_path: Path) -> None:
    write(render_all(default_settings(), tmp_path))

    said = amtool("config", "routes", "test", f"--config.file={tmp_path / ALERTMANAGER_FILE}", "alertname=DiskFull")

    assert said.strip() == NOBODY_RECEIVER
