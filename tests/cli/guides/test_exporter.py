"""The guide to the exporter: it serves one queue and several, and its Redis user is one that Redis takes."""

from __future__ import annotations

import shlex
from pathlib import Path

import httpx
import yaml

from drill.children import Children
from drill.ports import lasting_port
from tests.automation_parts import Queue
from tests.guides import Guide, Typist, settings_text
from tests.queues import wait_until

WITHIN_S = 30


def test_the_guide_is_followed(children: Children, own_queue: Queue, tmp_path: Path) -> None:
    port = lasting_port()
    settings = yaml.safe_load(settings_text(own_queue.settings.redis_url)) | {"exporter": {"port": port}}
    (tmp_path / "sluicegate.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    typist = Typist(children, tmp_path, instead={})

    def shows(line: str) -> bool:
        try:
            return line in httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
        except httpx.TransportError:
            return False

    with Guide.named("exporter") as guide:
        typist.starts("exporter", guide.next("sluicegate exporter serve"))
        wait_until(lambda: shows('sluicegate_redis_up{queue="default"} 1.0'), "the queue's page", WITHIN_S)
        children.end("exporter")
        typist.starts("exporter", guide.next("sluicegate exporter serve"))
        wait_until(lambda: shows('sluicegate_redis_up{queue="nightly"} 1.0'), "both queues' page", WITHIN_S)
        assert shows('sluicegate_redis_up{queue="default"} 1.0')
        line = typist.types(guide.next("sluicegate exporter acl"))
    assert own_queue.client.execute_command(*shlex.split(line)) in (True, "OK")
    own_queue.client.acl_deluser("sluicegate-exporter")
