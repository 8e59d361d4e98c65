"""Set up structured logs for a service: lines for people on a terminal, JSON lines otherwise."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

from sluicegate.printable import printable


def configure(level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Log events of `level` and above to `stream` (stderr without one); stdout stays for what was asked for."""
    stream = stream or sys.stderr
    rendered = [_printed, structlog.dev.ConsoleRenderer()] if stream.isatty() else [structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *rendered,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
    )


def _printed(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Take out of texts what would be a command to the terminal: an alert's name may be anything."""
    return {
        name: printable(value) if isinstance(value, str) and name != "exception" else value
        for name, value in event.items()
    }
