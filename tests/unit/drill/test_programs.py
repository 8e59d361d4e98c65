"""How the real servers are told what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from drill.monitoring import (
    PrometheusOptions,
    alertmanager_arguments,
    duration,
    prometheus_arguments,
    prometheus_config,
)
from drill.program import parse_version
from drill.proxy import parse_address
from drill.server import AppendFsync, ServerOptions, server_arguments
from drill.toxics import ControlError


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1", "7.0.15"),
        ("Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=1", "9.1.2"),
        ("prometheus, version 2.42.0+ds (branch: debian/sid, revision: 1)\n  build user: x", "2.42.0+ds"),
        ("alertmanager, version 0.25.0 (branch: debian/sid)", "0.25.0"),
        ("no idea", "unknown"),
    ],
)
def test_a_version_is_read_out_of_what_a_program_says(text: str, version: str) -> None:
    assert parse_version(text) == version


def test_a_server_listens_on_loopback_evicts_nothing_and_takes_no_snapshots() -> None:
    options = ServerOptions(append_only=True, append_fsync=AppendFsync.ALWAYS)
    arguments = server_arguments(Path("/bin/redis-server"), 7000, Path("/data"), options)
    pairs = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert pairs["--bind"] == "127.0.0.1"
    assert pairs["--maxmemory-policy"] == "noeviction"
    assert pairs["--save"] == ""
    assert (pairs["--appendonly"], pairs["--appendfsync"]) == ("yes", "always")
    assert (pairs["--port"], pairs["--dir"]) == ("7000", "/data")


def test_a_prometheus_reads_the_rules_scrapes_the_targets_and_alerts() -> None:
    options = PrometheusOptions(
        (Path("/r/a.yml"),), {"exporter": ["127.0.0.1:1"]}, 1.0, 0.5, alertmanagers=("127.0.0.1:2",)
    )
    config = yaml.safe_load(prometheus_config(options))
    assert config["global"] == {"scrape_interval": "1000ms", "scrape_timeout": "1000ms", "evaluation_interval": "500ms"}
    assert config["rule_files"] == ["/r/a.yml"]
    assert config["scrape_configs"] == [{"job_name": "exporter", "static_configs": [{"targets": ["127.0.0.1:1"]}]}]
    assert config["alerting"]["alertmanagers"] == [{"static_configs": [{"targets": ["127.0.0.1:2"]}]}]


def test_a_prometheus_without_an_alertmanager_has_no_alerting() -> None:
    assert "alerting" not in yaml.safe_load(prometheus_config(PrometheusOptions((), {})))


def test_both_show_their_pages_on_loopback_only_and_a_lone_alertmanager_joins_no_cluster() -> None:
    config = Path("/d/x.yml")
    for arguments in (prometheus_arguments(Path("p"), 7, config), alertmanager_arguments(Path("a"), 7, config)):
        assert "--web.listen-address=127.0.0.1:7" in arguments
    assert "--cluster.listen-address=" in alertmanager_arguments(Path("a"), 7, config)


@pytest.mark.parametrize(("seconds", "text"), [(15, "15000ms"), (0.5, "500ms"), (1.0, "1000ms")])
def test_a_duration_is_written_as_prometheus_reads_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:80", ("localhost", 80)),
        (":80", ("127.0.0.1", 80)),
        ("[::1]:80", ("::1", 80)),
        ("http://127.0.0.1:80/", ("127.0.0.1", 80)),
    ],
)
def test_an_address_is_read_into_host_and_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text, "upstream") == address


@pytest.mark.parametrize("text", ["", "localhost", "localhost:http", "localhost:99999", "localhost:-1"])
def test_a_bad_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(ControlError, match="`upstream` is"):
        parse_address(text, "upstream")
