"""Read the figures of a queue as the exporter does: by its own script, under its own user, into its own families."""

from __future__ import annotations

from typing import Any

import redis

from exporter.acl import acl_line
from exporter.families import queue_families
from sluicegate.telemetry import Telemetry
from tests.brute_force import Page

USER = "sluicegate-exporter"
PASSWORD = "reader-of-figures"


def add_reader(client: Any, *queues: str, extra: tuple[str, ...] = ()) -> None:
    """Give the server the read-only user of the printed line."""
    words = acl_line(USER, queues or ("default",)).replace("PASSWORD", PASSWORD).split()
    client.execute_command("ACL SETUSER", *words[2:], *extra)


def reader_url(url: str) -> str:
    """Give the address of a server as that user has it."""
    return url.replace("redis://", f"redis://{USER}:{PASSWORD}@")


def reader(url: str) -> Any:
    return redis.Redis.from_url(reader_url(url), decode_responses=True)


def page_of(telemetry: Telemetry) -> Page:
    """Give every sample of a reading by its name and the values of its labels beside the queue."""
    page: Page = {}
    for family in queue_families([telemetry]):
        for sample in family.samples:
            key = (sample.name, *(value for label, value in sample.labels.items() if label != "queue"))
            assert key not in page, f"{key} is there twice"
            page[key] = sample.value
    return page
