"""Know Redis TIME between two answers: the queue's deadlines are told by its clock, not by this machine's.

Each answer that carries its instant gives a sample: the instant lies between sending and receiving, so taking the
middle is wrong by at most half the round trip. The sample with the shortest round trip of the last ten seconds counts;
the local monotonic clock carries it on. A clock that is set on this machine changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.clock import Clock

# Two good quartz clocks drift apart by less than a millisecond in this time.
_SAMPLE_LIFE_S = 10.0


@dataclass(frozen=True, slots=True)
class _Sample:
    offset_ms: float
    round_trip_s: float
    taken_s: float


class QueueClock:
    """Give the queue's time from the latest good sample; before the first one it is this machine's wall time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sample: _Sample | None = None

    def learn(self, at_ms: int, sent_s: float, received_s: float) -> None:
        """Take a sample: an answer's instant in ms of Redis TIME, and the monotonic times around the call."""
        round_trip_s = received_s - sent_s
        known = self._sample
        stands = known is not None and received_s - known.taken_s < _SAMPLE_LIFE_S
        if known is not None and stands and known.round_trip_s < round_trip_s:
            return
        self._sample = _Sample(at_ms - (sent_s + received_s) * 500, round_trip_s, received_s)

    def now_ms(self) -> float:
        """Give Redis TIME in ms."""
        if self._sample is None:
            return float(self._clock.now_ms())
        return self._sample.offset_ms + self._clock.monotonic() * 1000

    def remaining_s(self, deadline_ms: int) -> float:
        """Give the seconds until a deadline, negative past it."""
        return (deadline_ms - self.now_ms()) / 1000
