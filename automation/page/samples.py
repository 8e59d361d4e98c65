"""Keep the figures of the last minutes in memory, so that the page can plot them without any other service. Bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sluicegate import telemetry as names
from sluicegate.damage import AGES, DEADLINES, known
from sluicegate.telemetry import Part, Telemetry

_POINTS = 150


@dataclass(frozen=True, slots=True)
class Sample:
    """Hold the plotted figures of an instant (ms, Redis TIME); None is no sample. `drain_state` is '' where unread."""

    at_ms: int
    values: Mapping[str, float | None]
    drain_state: str

    @classmethod
    def of(cls, telemetry: Telemetry) -> Sample:
        return cls(telemetry.at_ms, figures(telemetry), telemetry.gate.drain_state)


def figures(telemetry: Telemetry) -> dict[str, float | None]:
    """Give those of the nine fields that are numbers; None where there is no sample or it says nothing."""
    provider = telemetry.provider
    return {
        names.QUEUE_AGE_P95_SECONDS: known(telemetry, telemetry.queue_age_p95_seconds, *AGES),
        names.OLDEST_JOB_AGE_SECONDS: known(telemetry, telemetry.oldest_job_age_seconds, *AGES),
        names.DEADLINE_SLACK_P10_SECONDS: known(telemetry, telemetry.deadline_slack_p10_seconds, *DEADLINES),
        names.PROVIDER_5XX_RATE: known(telemetry, provider.rate_5xx, Part.PROVIDER),
        names.PROVIDER_TIMEOUT_RATE: known(telemetry, provider.rate_timeout, Part.PROVIDER),
        names.WORKER_INFLIGHT: known(telemetry, telemetry.worker_inflight, Part.RUNNING),
        names.CANARY_OK_COUNT: float(telemetry.gate.canary_ok_count),
    }


class Samples:
    """Keep at most 151 samples of the last `span_s` seconds; the newest one moves along with every reading."""

    def __init__(self, span_s: float) -> None:
        self.span_s = span_s
        self._step_ms = 1000 * span_s / _POINTS
        self._kept: deque[Sample] = deque(maxlen=_POINTS + 1)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, sample: Sample) -> None:
        """Take a sample; one from before the newest, as a clock that was set back gives it, starts anew."""
        kept = self._kept
        if kept and sample.at_ms < kept[-1].at_ms:
            kept.clear()
        # A move of the gate is drawn where it happened, and so is a gap: those stay.
        stays = len(kept) < 2 or not kept[-2].drain_state == kept[-1].drain_state == sample.drain_state
        if not stays and kept[-1].at_ms - kept[-2].at_ms < self._step_ms:
            kept.pop()
        kept.append(sample)
        while sample.at_ms - kept[0].at_ms > 1000 * self.span_s:
            kept.popleft()

    def miss(self, at_ms: int) -> None:
        """Leave a gap: nothing was read, and nothing is shown for it."""
        if self._kept and self._kept[-1].drain_state:
            self.add(Sample(max(at_ms, self._kept[-1].at_ms), {}, ""))
