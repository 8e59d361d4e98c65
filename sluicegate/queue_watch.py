"""Look at a queue again and again, for a person who watches; its server may come and go."""

from __future__ import annotations

import time
from collections.abc import Iterator

import typer

from sluicegate.errors import StoreUnavailable
from sluicegate.store import Store
from sluicegate.telemetry import Telemetry

# Clears a terminal, so that each look stands where the last one stood.
ANEW = "\x1b[H\x1b[J"


def looks(store: Store, every_s: float) -> Iterator[Telemetry]:
    """Give one reading after the other, for ever; a server that does not answer is said on stderr, once an outage."""
    down = False
    while True:
        try:
            telemetry = store.observe()
        except StoreUnavailable as error:
            if not down:
                typer.echo(f"The queue's server does not answer, what was shown is old: {error}", err=True)
            down = True
        else:
            down = False
            yield telemetry
        time.sleep(every_s)
