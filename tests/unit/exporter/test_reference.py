"""The reference is generated from the declared metrics, and it is up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exporter.catalogue import BUILD, PAGE, QUEUE_FIGURES, READING
from exporter.figure import Figure
from exporter.reference import reference

EVERY: tuple[Figure[Any], ...] = (*QUEUE_FIGURES, *READING, *PAGE, *BUILD)


def test_the_committed_page_is_what_the_code_generates(repository: Path) -> None:
    committed = (repository / "docs/reference/metrics.md").read_text(encoding="utf-8")

    assert committed == reference(), "run `sluicegate exporter reference > docs/reference/metrics.md`"


def test_every_metric_has_its_section_with_type_labels_and_source() -> None:
    page = reference()

    for figure in EVERY:
        section = page.split(f"### {figure.name}\n")[1].split("\n#")[0]
        assert figure.help in section
        assert f"- type: {figure.kind}" in section
        assert f"- unit: {figure.unit}" in section
        assert f"- method: {figure.method}" in section
        assert all(f"`{label}`" in section for label in figure.labels)
        assert all(f"`{key}`" in section for key in figure.keys)


def test_every_metric_is_declared_once_with_a_help_and_a_lawful_name() -> None:
    names = [figure.name for figure in EVERY]

    assert len(set(names)) == len(names)
    assert all(figure.help.endswith(".") for figure in EVERY)
    assert all(name.startswith("sluicegate_") for name in names[9:])
    assert all(figure.name.endswith("_total") == (figure.kind == "counter") for figure in EVERY)


def test_no_label_collides_with_what_prometheus_itself_attaches() -> None:
    labels = {label for figure in EVERY for label in figure.labels}

    assert not labels & {"job", "instance", "type", "env", "cluster", "job_id", "worker"}
