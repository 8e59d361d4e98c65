"""The real Prometheus and Alertmanager that a drill starts."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from drill.child import ChildDied
from drill.children import Children
from drill.monitoring import (
    Alertmanager,
    Prometheus,
    PrometheusOptions,
    find_alertmanager,
    find_prometheus,
)
from sluicegate.errors import UsageError
from tests.small_server import Handler, served

RULE = """
groups:
- name: test
  rules:
  - alert: TargetSeen
    expr: up{job="prometheus"} == 1
    labels: {severity: page}
"""
ROUTING = """
route: {receiver: hook, group_wait: 0s}
receivers:
- name: hook
  webhook_configs: [{url: "http://127.0.0.1:%d/hook"}]
"""
WITHIN_S = 20.0


@pytest.fixture
def posts() -> Iterator[tuple[int, queue.Queue[dict[str, object]]]]:
    """A real receiver of webhooks: its port and what it was sent."""
    received: queue.Queue[dict[str, object]] = queue.Queue()

    class Receiver(Handler):
        def respond(self) -> None:
            received.put(json.loads(self.body()))
            self.answer(200)

    with served(Receiver) as address:
        yield int(address.rpartition(":")[2]), received


def test_an_alert_goes_from_a_scrape_to_a_webhook(
    children: Children, posts: tuple[int, queue.Queue[dict[str, object]]], tmp_path: Path
) -> None:
    port, received = posts
    rules = tmp_path / "rules.yml"
    rules.write_text(RULE)
    alertmanager = Alertmanager(children, ROUTING % port)
    alertmanager.start()
    # The target is whatever answers /metrics: here Alertmanager itself.
    options = PrometheusOptions((rules,), {"prometheus": [alertmanager.address]}, 0.5, 0.5, (alertmanager.address,))
    prometheus = Prometheus(children, options)
    prometheus.start()
    alerts = received.get(timeout=WITHIN_S)["alerts"]
    assert isinstance(alerts, list)
    assert alerts[0]["labels"]["alertname"] == "TargetSeen"
    assert alerts[0]["generatorURL"].startswith(prometheus.url)
    assert children.failed() == ()


def test_two_of_each_run_side_by_side_and_end_with_their_drill(children: Children) -> None:
    with Children() as other:
        for owner in (children, other):
            alertmanager = Alertmanager(owner, ROUTING % 9)
            alertmanager.start()
            prometheus = Prometheus(owner, PrometheusOptions((), {}))
            prometheus.start()
        folder = other.folder
        assert httpx.get(f"{prometheus.url}/-/ready", trust_env=False).status_code == 200
    assert not folder.exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{prometheus.url}/-/ready", trust_env=False)
    assert len(children.pids()) == 2


def test_stop_is_safe_before_start_and_twice(children: Children) -> None:
    for server in (Prometheus(children, PrometheusOptions((), {})), Alertmanager(children, ROUTING % 9)):
        server.stop()
        server.start()
        server.stop()
        server.stop()
    assert children.pids() == {}


def test_a_bad_rule_file_is_reported_in_prometheuss_words(children: Children, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text("groups: [{name: test, rules: [{alert: A, expr: 'up =='}]}]")
    before = time.monotonic()
    with pytest.raises(ChildDied, match="could not parse expression"):
        Prometheus(children, PrometheusOptions((rules,), {})).start()
    assert time.monotonic() - before < WITHIN_S


def test_a_bad_routing_is_reported_in_alertmanagers_words(children: Children) -> None:
    with pytest.raises(ChildDied, match="nobody"):
        Alertmanager(children, "route: {receiver: nobody}").start()


def test_says_what_runs(children: Children) -> None:
    assert Prometheus(children, PrometheusOptions((), {})).describe().startswith("Prometheus ")
    assert Alertmanager(children, "").describe().startswith("Alertmanager ")
    for program in (find_prometheus(), find_alertmanager()):
        assert program.version[0].isdigit()
        assert program.path.exists()


@pytest.mark.parametrize(
    ("find", "package"),
    [
        (find_prometheus, "prometheus"),
        (find_alertmanager, "prometheus-alertmanager"),
    ],
)
def test_a_missing_program_names_its_debian_package(
    find: object, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert callable(find)
    with pytest.raises(UsageError, match="is missing: ") as caught:
        find()
    assert caught.value.hint.endswith(f" {package}")
