"""The guide to notices: its settings name receivers, and a planned run makes its silence in a real Alertmanager."""

from __future__ import annotations

from pathlib import Path

import httpx
import yaml

from drill.children import Children
from drill.monitoring import Alertmanager
from sluicegate.settings import parse
from tests.automation_parts import Queue
from tests.guides import GUIDES, Guide, Typist, blocks, settings_text


def test_the_guide_is_followed(
    children: Children, own_queue: Queue, alertmanager: Alertmanager, tmp_path: Path
) -> None:
    settings = yaml.safe_load(settings_text(own_queue.settings.redis_url))
    for block in blocks((GUIDES / "notifications.md").read_text(encoding="utf-8"), "yaml"):
        settings.setdefault("automation", {}).update(yaml.safe_load(block)["automation"])
    kinds = {receiver.kind.value for receiver in parse(settings, "the guide").automation.receivers.values()}
    assert kinds == {"slack", "pagerduty", "github", "webhook"}
    text = yaml.safe_dump(settings).replace("http://127.0.0.1:9093", alertmanager.url)
    (tmp_path / "sluicegate.yaml").write_text(text, encoding="utf-8")
    typist = Typist(children, tmp_path, instead={})
    with Guide.named("notifications") as guide:
        typist.types(guide.next("sluicegate automation run drain-and-recover"))
    (silence,) = httpx.get(f"{alertmanager.url}/api/v2/silences", trust_env=False).json()
    (run,) = own_queue.store.runs(1)
    assert silence["comment"].startswith(f"run {run.run_id}: ann")
