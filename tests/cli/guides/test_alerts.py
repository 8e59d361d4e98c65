"""The guide to the alerts: its commands give files that the real programs take, its Prometheus file among them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from drill.children import Children
from tests.guides import GUIDES, GUIDES_URL, Guide, Typist, blocks, settings_text


@pytest.mark.timeout(300)
def test_the_guide_is_followed_to_files_that_prometheus_and_alertmanager_take(
    children: Children, tmp_path: Path
) -> None:
    (tmp_path / "sluicegate.yaml").write_text(settings_text(GUIDES_URL), encoding="utf-8")
    typist = Typist(children, tmp_path, instead={})
    with Guide.named("alerts") as guide:
        typist.types(guide.next("sluicegate rules generate"))
        typist.types(guide.next("sluicegate rules test"))
        typist.types(guide.next("sluicegate rules certify"))
    monitoring = tmp_path / "monitoring"
    text = (GUIDES / "alerts.md").read_text(encoding="utf-8")
    (config,) = (block for block in blocks(text, "yaml") if "scrape_configs:" in block)
    (monitoring / "prometheus.yml").write_text(config, encoding="utf-8")
    for words in (("promtool", "check", "config", "prometheus.yml"), ("amtool", "check-config", "alertmanager.yml")):
        assert shutil.which(words[0]), f"{words[0]} is missing; `make setup` installs it"
        checked = subprocess.run(words, cwd=monitoring, capture_output=True, text=True, timeout=30, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
