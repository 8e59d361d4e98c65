"""The files in deploy/ fit together and name only what exists. Nothing is started here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from drill.provider import InjectedFault
from sluicegate.__main__ import WORDS
from sluicegate.settings import load

# Service → how many of it run.
TOPOLOGY = {
    "redis": 1,
    "toxiproxy": 1,
    "provider": 1,
    "worker": 3,
    "automation": 1,
    "exporter": 1,
    "prometheus": 1,
    "alertmanager": 1,
    "grafana": 1,
}


@pytest.fixture(scope="module")
def deploy() -> Path:
    return Path(__file__).resolve().parents[2] / "deploy"


@pytest.fixture(scope="module")
def services(deploy: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((deploy / "compose.yaml").read_text())["services"]
    return found


def ours(services: dict[str, dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each service that runs this project's image, and its command."""
    for name, service in services.items():
        if service["image"].startswith("sluicegate:"):
            yield name, service["command"]


def test_every_service_of_the_topology_is_there(services: dict[str, dict[str, Any]]) -> None:
    by_hand = {name for name, service in services.items() if service.get("profiles") == ["by-hand"]}
    counted = {
        name: service.get("deploy", {}).get("replicas", 1) for name, service in services.items() if name not in by_hand
    }
    assert counted == TOPOLOGY
    assert by_hand == {"queue-init"}


def test_every_image_has_a_tag_that_is_a_version(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        assert re.fullmatch(r"[a-z/]+:v?\d+[\w.-]*", service["image"]), f"{name} runs {service['image']}"


def test_every_mounted_file_exists_and_every_volume_is_declared(
    deploy: Path, services: dict[str, dict[str, Any]]
) -> None:
    declared = set(yaml.safe_load((deploy / "compose.yaml").read_text())["volumes"])
    used = set()
    for name, service in services.items():
        for volume in service.get("volumes", []):
            source, target, *mode = volume.split(":")
            if source.startswith("."):
                assert (deploy / source).exists(), f"{name} mounts {source}, which does not exist"
                assert mode == ["ro"], f"{name} could write into {source}"
            else:
                used.add(source)
            assert target.startswith("/")
    assert used == declared


def test_every_port_is_published_on_loopback_only(services: dict[str, dict[str, Any]]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_every_address_that_the_page_names_is_published(deploy: Path, services: dict[str, dict[str, Any]]) -> None:
    published = {port.split(":")[1] for service in services.values() for port in service.get("ports", [])}
    named = set(re.findall(r"http://127\.0\.0\.1:(\d+)", (deploy / "README.md").read_text()))
    assert {"8474", "8081"} <= named
    assert named <= published


def test_the_fault_that_the_page_injects_is_one_of_the_provider(deploy: Path) -> None:
    (body,) = re.findall(r"/faults .*?-d '([^']+)'", (deploy / "README.md").read_text(), re.DOTALL)
    assert InjectedFault.model_validate_json(body).status == 503


def test_every_command_is_a_real_one_with_real_flags(services: dict[str, dict[str, Any]]) -> None:
    commands = dict(ours(services))
    assert set(commands) == {"queue-init", "provider", "worker", "automation", "exporter"}
    for name, (word, subcommand, *flags) in commands.items():
        group = typer.main.get_command(import_module(WORDS[word].module).app)
        command = getattr(group, "commands", {}).get(subcommand)
        assert command is not None, f"{name} runs `sluicegate {word} {subcommand}`, which does not exist"
        known = {option for parameter in command.params for option in parameter.opts}
        required = {parameter.opts[0] for parameter in command.params if parameter.required}
        given = {flag.partition("=")[0] for flag in flags}
        assert given <= known, f"{name}: {given - known} is no flag of `sluicegate {word} {subcommand}`"
        assert required <= given, f"{name}: `sluicegate {word} {subcommand}` needs {required - given}"


def test_the_settings_load_and_name_services_of_the_topology(deploy: Path, services: dict[str, dict[str, Any]]) -> None:
    settings = load(deploy / "settings.yaml", environment={})
    (proxy,) = json.loads((deploy / "toxiproxy" / "proxies.json").read_text())
    assert settings.redis_url.startswith("redis://redis:6379")
    assert settings.provider_url == f"http://toxiproxy:{proxy['listen'].rpartition(':')[2]}"
    assert proxy["upstream"] == "provider:8081"
    assert "--port=8081" in services["provider"]["command"]
    assert settings.contract.max_running == TOPOLOGY["worker"] * settings.worker.max_inflight
    assert {settings.exporter.host, settings.automation.host} == {"0.0.0.0"}


def test_prometheus_reads_the_generated_rules_and_scrapes_our_services(
    deploy: Path, services: dict[str, dict[str, Any]]
) -> None:
    path = deploy / "prometheus" / "prometheus.yaml"
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing; `make setup` installs it"
    check = subprocess.run(
        [promtool, "check", "config", "--syntax-only", str(path)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert check.returncode == 0, check.stderr
    config = yaml.safe_load(path.read_text())
    settings = load(deploy / "settings.yaml", environment={})
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in config["scrape_configs"]}
    assert targets[settings.monitoring.exporter_job] == [f"exporter:{settings.exporter.port}"]
    assert [f"automation:{settings.automation.port}"] in targets.values()
    for rule_file in config["rule_files"]:
        assert (deploy.parent / "rules" / "generated" / Path(rule_file).name).is_file(), rule_file
    interval = f"{settings.monitoring.scrape_interval_s:g}s"
    assert config["global"]["scrape_interval"] == interval, "the rules are generated for the settings' interval"


def test_alertmanager_reaches_the_webhook_that_its_generated_routing_names(
    deploy: Path, services: dict[str, dict[str, Any]]
) -> None:
    routing = (deploy.parent / "rules" / "generated" / "alertmanager.yml").read_text()
    port = load(deploy / "settings.yaml", environment={}).automation.port
    assert f"http://127.0.0.1:{port}/" in routing
    assert services["alertmanager"]["network_mode"] == "service:automation"


def test_grafana_finds_the_generated_dashboards_and_their_data_source(
    deploy: Path, services: dict[str, dict[str, Any]]
) -> None:
    provisioning = deploy / "grafana" / "provisioning"
    provider = yaml.safe_load((provisioning / "dashboards" / "sluicegate.yaml").read_text())["providers"][0]
    assert f"../dashboards/generated:{provider['options']['path']}:ro" in services["grafana"]["volumes"]
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["type"] == "prometheus"
    assert source["url"] == "http://prometheus:9090"
    dashboards = list((deploy.parent / "dashboards" / "generated").glob("*.json"))
    assert dashboards
    for path in dashboards:
        for used in re.findall(r'"uid": "([^"$]*)",?\s*\n?\s*"type": "prometheus"', path.read_text()):
            assert used == source["uid"], f"{path.name} reads from {used}"
