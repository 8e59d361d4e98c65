"""The guide to a host that is gone: what was written down comes back on an empty server, closed, and a run opens it."""

from __future__ import annotations

from pathlib import Path

import yaml

from drill.children import Children
from drill.server import ServerKind, ServerOptions
from sluicegate.store import Store
from tests.automation_parts import Queue
from tests.guides import Guide, Typist
from tests.queues import wait_until
from tests.servers import MakeServer


def test_the_guide_is_followed(children: Children, own_queue: Queue, make_server: MakeServer, tmp_path: Path) -> None:
    assert own_queue.submit(3) == ["", "", ""]
    backup = tmp_path / "backup"
    backup.mkdir()
    new_host = make_server(ServerOptions(kind=ServerKind.REDIS, append_only=True)).url
    settings = own_queue.settings.model_dump(mode="json")
    settings |= {name: settings[name] | {"port": 0} for name in ("exporter", "automation")}
    (tmp_path / "sluicegate.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    instead = {"/backup/": f"{backup}/", "redis://new-host:6379/0": new_host}
    typist = Typist(children, tmp_path, instead=instead, REDIS_URL=own_queue.settings.redis_url)
    with Guide.named("rebuild-a-host") as guide:
        typist.types(guide.next("sluicegate queue snapshot"))
        (file,) = backup.iterdir()
        typist.puts("orders.jsonl.gz", str(file))
        typist.types(guide.next("export REDIS_URL"))
        typist.types(guide.next("sluicegate queue doctor"))
        typist.types(guide.next("sluicegate queue restore orders.jsonl.gz --dry-run"))
        restored = Store.connect(new_host)
        assert restored.observe().ready == 0, "a dry run writes nothing"
        typist.types(guide.next("sluicegate queue restore"))
        telemetry = restored.observe()
        assert (telemetry.ready, telemetry.gate.drain_state, telemetry.gate.pin) == (3, "drain", "restored")
        for part in ("automation serve", "exporter serve", "worker run"):
            typist.starts(part.split()[0], guide.next(f"sluicegate {part}"))
        wait_until(lambda: restored.observe().gate.controller_seen_ms > telemetry.at_ms, "the new server's controller")
        typist.types(guide.next("sluicegate queue stats"))
        typist.types(guide.next("sluicegate queue unknown"))
        typist.types(guide.next("sluicegate automation run drain-and-recover"))
        assert restored.observe().gate.run is not None
        restored.close()
