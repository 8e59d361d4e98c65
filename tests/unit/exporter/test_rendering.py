"""The page that is written in a tenth of the time is, byte for byte, the one that prometheus-client writes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector as PrometheusCollector

from exporter import lines, rendering
from exporter.app import process_registry
from exporter.catalogue import QUEUE_FIGURES
from exporter.families import own_families
from exporter.families import page as families_of
from exporter.lines import Lines
from exporter.reading import Failure, Reading, Scrape
from exporter.rendering import Renderer
from sluicegate.telemetry import Part
from tests.unit.exporter.telemetries import BUSY, LINT_FIX
from tests.unit.exporter.test_app import FULL

ACCEPTS = (
    "",
    "text/plain",
    "text/plain;version=1.0.0;escaping=allow-utf-8",
    "application/openmetrics-text;version=1.0.0",
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "application/openmetrics-text;version=1.0.0;escaping=dots",
    "application/openmetrics-text;version=1.0.0;escaping=values",
)
NAMES = st.text(st.sampled_from("ab_"), max_size=6).map(lambda text: f"m{text}")
TEXTS = st.text(st.sampled_from('ab \\"\n,{}=é😀'), max_size=8)
EDGES = (0.0, -0.0, 1e6, 999_999.5, 1_234_567.0, 1e16, -2e7, 5e-324)
VALUES = st.one_of(st.floats(), st.integers(-(10**9), 10**9).map(float), st.sampled_from(EDGES))
SUFFIXES = {
    "gauge": ("",),
    "counter": ("_total", "_created"),
    "info": ("_info",),
    "stateset": ("",),
    "gaugehistogram": ("_bucket", "_gcount", "_gsum"),
    "unknown": ("",),
}


@st.composite
def families(draw: st.DrawFn) -> Metric:
    """Draw one family of any type with any samples that fit it."""
    kind = draw(st.sampled_from(sorted(SUFFIXES)))
    name = draw(NAMES)
    unit = draw(st.sampled_from(["", "seconds"]))
    family = Metric(f"{name}_{unit}" if unit else name, draw(TEXTS), kind, unit)
    for suffix in SUFFIXES[kind]:
        labels = draw(st.lists(NAMES, max_size=3, unique=True))
        for _ in range(draw(st.integers(0, 3))):
            values = {label: draw(TEXTS) for label in labels}
            if suffix == "_bucket":
                values["le"] = draw(st.sampled_from(["1.0", "+Inf"]))
            family.add_sample(family.name + suffix, values, draw(VALUES))
    return family


class Fixed(PrometheusCollector):
    """Give the same families at every scrape, as a registry does."""

    def __init__(self, given: Sequence[Metric]) -> None:
        self._given = given

    def collect(self) -> Iterable[Metric]:
        return self._given


def registry_of(given: Sequence[Metric]) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Fixed(given))
    return registry


@pytest.mark.parametrize("accept", ACCEPTS)
# On a shared machine the first draw may take long, which says nothing of the renderer.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(drawn=st.lists(families(), max_size=4))
def test_it_writes_what_prometheus_client_writes(accept: str, drawn: list[Metric]) -> None:
    scrape = Scrape((), 0.25)
    encode, content_type = choose_encoder(accept)
    expected = encode(Fixed([*families_of(scrape), *drawn]))
    renderer = Renderer(registry_of(drawn))

    # Made anew, then from what was kept.
    for _ in range(2):
        assert renderer.render(scrape, accept) == (expected, content_type)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "_MOST_KEPT", 100)
    monkeypatch.setattr(lines, "_MOST_KEPT", 1000)
    family = Metric("jobs", "Jobs.", "gauge")
    renderer = Renderer(registry_of([family]))
    written = Lines(QUEUE_FIGURES, ("default",))
    for number in range(300):
        family.samples.clear()
        family.add_sample("jobs", {"job_class": f"class-{number}"}, 1.0)
        page, _ = renderer.render(Scrape((), 0.0), "")
        assert f'jobs{{job_class="class-{number}"}} 1.0\n'.encode() in page
        assert len(renderer._starts) <= 150
        text = b"".join(written.write(replace(FULL, classes={f"class-{number}": LINT_FIX}))).decode()
        assert f'sluicegate_class_jobs{{class="class-{number}",queue="default",state="pending"}} 4.0\n' in text
        assert sum(len(kept.starts) for kept in written._kept) <= 2000


def test_lines_kept_from_a_scrape_are_never_those_of_another() -> None:
    """Whatever changes between two scrapes, one value or all, the second shows what was read for it."""
    other = replace(FULL, counters={**FULL.counters, "admitted": 99}, queue_age_p95_seconds=1e9)
    damaged = replace(FULL, damaged=frozenset({Part.COUNTERS, Part.READY}))
    kept = Lines(QUEUE_FIGURES, ("default",))
    for one in (FULL, other, FULL, BUSY, damaged, BUSY, replace(BUSY, classes={}), FULL, FULL):
        assert kept.write(one) == Lines(QUEUE_FIGURES, ("default",)).write(one)


@pytest.mark.parametrize("accept", ACCEPTS)
def test_a_page_of_queues_is_what_prometheus_client_writes_of_their_families(accept: str) -> None:
    nightly = replace(BUSY, queue="nightly", classes={})
    failed = Reading("weekly", False, failure=Failure.LATE, detail="no answer")
    readings = [Reading(one.queue, True, one, Lines(QUEUE_FIGURES, (one.queue,)).write(one)) for one in (FULL, nightly)]
    scrape = Scrape((*readings, failed), 0.25)
    still = registry_of(list(process_registry().collect()))
    encode, content_type = choose_encoder(accept)
    expected = encode(Fixed([*families_of(scrape), *still.collect()]))
    renderer = Renderer(still)

    for _ in range(2):
        assert renderer.render(scrape, accept) == (expected, content_type)


def test_a_figure_that_does_not_fit_its_labels_is_an_error_and_no_line() -> None:
    (figure,) = [one for one in QUEUE_FIGURES if one.name == "sluicegate_jobs"]
    unfit = replace(figure, read=lambda _: [(("a", "b"), 1.0)])
    with pytest.raises(ValueError, match="zip"):
        Lines([unfit], ("default",)).write(FULL)


def test_no_family_of_ours_has_a_name_that_a_scheme_would_change() -> None:
    names = {family.name for family in [*own_families(Scrape((), 0.0)), *families_of(Scrape((), 0.0))]}
    assert names
    assert all(name.isascii() and name.replace("_", "").isalnum() for name in names)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_finite_number_is_written_as_the_format_has_it(value: float) -> None:
    family = Metric("edge", "Edge.", "gauge")
    family.add_sample("edge", {}, value)
    page, _ = Renderer(registry_of([family])).render(Scrape((), 0.0), "")
    assert {math.inf: b"edge +Inf\n", -math.inf: b"edge -Inf\n"}.get(value, b"edge NaN\n") in page
