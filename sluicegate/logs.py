"""Set up structured logs for a service: lines for people on a terminal, JSON lines otherwise."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog


def configure(level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Log events of `level` and above to `stream` (stderr without one); stdout stays for what was asked for."""
    stream = stream or sys.stderr
    renderer = structlog.dev.ConsoleRenderer() if stream.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
    )
