"""How the provider's calls end: the window behind the two rates, and totals that outlive it."""

from __future__ import annotations

from exporter.catalogue.records import counter, gauge, measure, totals
from exporter.figure import Figure, Method
from sluicegate import telemetry as names
from sluicegate.job import CallKind
from sluicegate.telemetry import Part, Telemetry

_WINDOW_KEYS = ("provider:{window}:{bucket}",)


PROVIDER: tuple[Figure[Telemetry], ...] = (
    counter(
        names.PROVIDER_CALLS_TOTAL,
        "Provider calls that ended, by outcome: ok, 5xx, timeout, other (another status), refused, dropped, cancelled.",
        totals({kind: f"calls:{kind}" for kind in CallKind}),
        unit="calls",
        keys=("counters",),
        labels=("outcome",),
    ),
    gauge(
        names.PROVIDER_WINDOW_SECONDS,
        "Length of the window behind provider_5xx_rate and provider_timeout_rate.",
        measure(lambda telemetry: telemetry.provider.seconds),
        unit="seconds",
        keys=("queue:settings",),
        method=Method.STORED,
    ),
    gauge(
        names.PROVIDER_WINDOW_CALLS,
        "Calls that ended in the window: the denominator of both rates.",
        measure(lambda telemetry: telemetry.provider.calls, Part.PROVIDER),
        unit="calls",
        keys=_WINDOW_KEYS,
        method=Method.WINDOW,
    ),
    gauge(
        names.PROVIDER_WINDOW_FAILED_CALLS,
        "Calls in the window that were answered 5xx or timed out: both numerators together.",
        measure(lambda telemetry: telemetry.provider.failed, Part.PROVIDER),
        unit="calls",
        keys=_WINDOW_KEYS,
        method=Method.WINDOW,
    ),
)
