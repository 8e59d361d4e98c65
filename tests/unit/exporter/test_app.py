"""The pages: both formats by negotiation, always 200 for a scraper, and health that means what it says."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from dataclasses import replace

import httpx
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.app import create_app
from exporter.catalogue import QUEUE_FIGURES
from exporter.collector import Collector, Observe
from sluicegate.errors import StoreUnavailable
from sluicegate.telemetry import STABLE_FIELDS, Telemetry
from tests.readings import with_gate
from tests.unit.exporter.telemetries import BUSY, LINT_FIX, RECOVERY

OPENMETRICS = "application/openmetrics-text; version=1.0.0"

# Every figure has a sample: a live run, and labels with every character that must be escaped.
FULL = replace(
    with_gate(BUSY, run=RECOVERY, rollback_reason="canary_failed", pin="rolled_back"),
    classes={"lint-fix": LINT_FIX, 'a "quoted\\\nclass': LINT_FIX},
)


def full(_: float) -> Telemetry:
    return FULL


def down(_: float) -> Telemetry:
    raise StoreUnavailable("No answer from Redis within 0.9 s.")


def openmetrics(text: str) -> list[Metric]:
    """Parse a page by OpenMetrics' own strict rules."""
    return list(parse_openmetrics(text))  # type: ignore[no-untyped-call]


def get(
    path: str,
    source: Observe = full,
    accept: str = "text/plain",
    timeout: str | None = None,
    *,
    encoding: str = "identity",
    method: str = "GET",
) -> httpx.Response:
    """Ask a fresh application for one path."""
    collector = Collector({"default": source}, budget_s=1.0)
    headers = {"accept": accept, "accept-encoding": encoding}
    if timeout is not None:
        headers["X-Prometheus-Scrape-Timeout-Seconds"] = timeout

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(collector))
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
            return await client.request(method, path, headers=headers)

    try:
        return asyncio.run(ask())
    finally:
        collector.close()


def test_the_text_page_parses_and_has_a_sample_of_every_declared_figure() -> None:
    answer = get("/metrics")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found = {sample.name for family in parse_text(answer.text) for sample in family.samples}
    assert {figure.sample_name for figure in QUEUE_FIGURES} <= found
    assert {"process_open_fds", "python_info", "sluicegate_build_info", "sluicegate_scrape_duration_seconds"} <= found


def test_openmetrics_is_served_on_request_and_parses_with_its_types_and_units() -> None:
    answer = get("/metrics", accept=OPENMETRICS)

    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    families = {family.name: family for family in openmetrics(answer.text)}
    assert families["drain_state"].type == "stateset"
    assert families["rollback_reason"].type == "stateset"
    assert families["sluicegate_provider_calls"].type == "counter"
    assert families["queue_age_p95_seconds"].unit == "seconds"
    assert families["sluicegate_build"].type == "info"
    ages = families["sluicegate_class_queue_age_seconds"]
    # No sum is kept, and a strict parser takes no count without one.
    assert (ages.type, {sample.name for sample in ages.samples}) == ("gaugehistogram", {f"{ages.name}_bucket"})
    assert families["sluicegate_class_queue_age_seconds"].unit == "seconds"


def test_both_formats_show_the_same_values_and_escape_every_character() -> None:
    text = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parse_text(get("/metrics").text)
        for sample in family.samples
    }
    strict = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in openmetrics(get("/metrics", accept=OPENMETRICS).text)
        for sample in family.samples
    }
    names = {figure.sample_name for figure in QUEUE_FIGURES}

    assert {key: at for key, at in text.items() if key[0] in names} == {
        key: at for key, at in strict.items() if key[0] in names
    }
    assert any(("class", 'a "quoted\\\nclass') in key for key in text)


def test_promtool_finds_nothing_but_the_name_that_is_waived() -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "promtool must be on the PATH"

    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=get("/metrics").text,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    complaints = [line.split()[0] for line in (checked.stdout + checked.stderr).splitlines() if line]
    assert complaints == ["canary_ok_count"]


def test_a_page_without_redis_is_200_with_the_reason_and_no_figure_of_the_queue() -> None:
    answer = get("/metrics", source=down)

    found = {sample.name: sample for family in parse_text(answer.text) for sample in family.samples}
    assert answer.status_code == 200
    assert found["sluicegate_redis_up"].value == 0
    assert not set(STABLE_FIELDS) & set(found)
    assert not {figure.sample_name for figure in QUEUE_FIGURES} & set(found)


def test_health_is_the_process_and_readiness_is_the_figures() -> None:
    assert (get("/healthz", source=down).status_code, get("/healthz").status_code) == (200, 200)
    assert get("/readyz").text == "ready\n"
    unready = get("/readyz", source=down)
    assert unready.status_code == 503
    assert unready.text == "queue default: unavailable: No answer from Redis within 0.9 s.\n"


def test_the_landing_page_names_the_queues_and_links_the_metrics() -> None:
    page = get("/").text

    assert "<li>default</li>" in page
    assert "href='/metrics'" in page


def test_a_stranger_path_is_not_found() -> None:
    assert get("/probe?target=redis://elsewhere").status_code == 404


@pytest.mark.parametrize(
    ("offer", "taken"),
    [
        ("gzip", True),
        ("br, GZIP ;q=0.5", True),
        ("gzip;q=0.01", True),
        ("gzip;q=1", True),
        ("gzip;q=0", False),
        ("gzip; q=0.00", False),
        ("gzip;q=x", False),
        ("identity", False),
        ("", False),
        ("x-gzip-like", False),
    ],
)
def test_the_page_is_compressed_for_whoever_takes_it(offer: str, taken: bool) -> None:
    answer = get("/metrics", encoding=offer)

    assert ("content-encoding" in answer.headers) is taken
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert answer.text.startswith("# HELP")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_only_a_get_is_answered_with_the_page(method: str) -> None:
    answer = get("/metrics", method=method)

    assert answer.status_code in (404, 405)
    assert "sluicegate" not in answer.text
