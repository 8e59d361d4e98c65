"""The guide to the dashboards: generated, pushed to what answers as Grafana does, and drawn by a real Chromium."""

from __future__ import annotations

from pathlib import Path

from drill.children import Children
from drill.monitoring import Prometheus
from sluicegate.records import DASHBOARD_UID, RUNS_DASHBOARD_UID
from tests.guides import GUIDES_URL, Guide, Typist, settings_text
from tests.small_server import served
from tests.unit.dashboards.test_push import TOKEN, FakeGrafana


def test_the_guide_is_followed(children: Children, prometheus: Prometheus, tmp_path: Path) -> None:
    (tmp_path / "sluicegate.yaml").write_text(settings_text(GUIDES_URL), encoding="utf-8")
    (tmp_path / "grafana.token").write_text(f"{TOKEN}\n", encoding="utf-8")
    grafana = FakeGrafana()
    with Guide.named("dashboards") as guide, served(grafana.handler()) as address:
        instead = {"http://127.0.0.1:3000": f"http://{address}", "http://127.0.0.1:9090": prometheus.url}
        typist = Typist(children, tmp_path, instead=instead)
        typist.types(guide.next("sluicegate dashboards generate"))
        typist.types(guide.next("sluicegate dashboards push"))
        typist.types(guide.next("sluicegate dashboards picture"))
    assert set(grafana.dashboards) == {DASHBOARD_UID, RUNS_DASHBOARD_UID}
    for folder, ending in (("grafana/dashboards", "json"), ("pictures", "png")):
        made = {path.name for path in (tmp_path / folder).iterdir()}
        assert made == {f"sluicegate-overview.{ending}", f"sluicegate-runs.{ending}"}
