"""Which metrics are there? Every one is declared here, once, a file a group."""

from __future__ import annotations

from exporter.catalogue.backlog import BACKLOG
from exporter.catalogue.classes import CLASSES
from exporter.catalogue.fields import FIELDS
from exporter.catalogue.flow import FLOW
from exporter.catalogue.gate import GATE
from exporter.catalogue.own import BUILD, PAGE, READING
from exporter.catalogue.provider import PROVIDER
from exporter.figure import Figure
from sluicegate.telemetry import Telemetry

QUEUE_FIGURES: tuple[Figure[Telemetry], ...] = (*FIELDS, *BACKLOG, *CLASSES, *PROVIDER, *GATE, *FLOW)

__all__ = ["BACKLOG", "BUILD", "CLASSES", "FIELDS", "FLOW", "GATE", "PAGE", "PROVIDER", "QUEUE_FIGURES", "READING"]
