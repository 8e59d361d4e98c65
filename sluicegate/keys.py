"""The names of all keys of a queue, each once (DESIGN, "Redis keys").

The functions build the same names from the prefix; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

DEFAULT_QUEUE = "default"
# A run's journal lies under the run's own name: how such a name begins and ends.
_JOURNAL = ("run:", ":journal")


@dataclass(frozen=True, slots=True)
class Keys:
    """Name the keys of one queue under its prefix: empty for the queue `default`, else `{name}:`."""

    prefix: str = ""

    @classmethod
    def for_queue(cls, queue: str) -> Keys:
        """Give the prefix of a queue; the braces keep all its keys in one slot of a cluster."""
        return cls("" if queue == DEFAULT_QUEUE else f"{{{queue}}}:")

    @property
    def queue(self) -> str:
        """Give the value of the `queue` label."""
        return self.prefix[1:-2] if self.prefix else DEFAULT_QUEUE

    def __call__(self, name: str) -> str:
        return self.prefix + name

    def job(self, job_id: str) -> str:
        return f"{self.prefix}job:{job_id}"

    def payload(self, job_id: str) -> str:
        return f"{self.prefix}payload:{job_id}"

    def run(self, run_id: str) -> str:
        return f"{self.prefix}run:{run_id}"

    def journal(self, run_id: str) -> str:
        return f"{self.prefix}run:{run_id}{_JOURNAL[1]}"

    def failed(self, date: str) -> str:
        return f"{self.prefix}failed:{date}"


# The gate as people and plain clients see it.
DRAIN_STATE = "drain_state"
ADMISSION = "admission"
ROLLBACK_REASON = "rollback_reason"
CANARY_OK_COUNT = "canary_ok_count"
# What the library's own moves wrote; pin and ramp are fields of control:gate.
GATE = "control:gate"
EPOCH = "control:epoch"
SEEN = "control:seen"
DECISION = "control:decision"
DUPLICATES = "control:duplicates"
ENDPOINT = "control:endpoint"
SNAPSHOT = "control:snapshot"
GATE_LOG = "control:log"
RECONCILE_LOG = "reconcile:log"
AUDIT = "audit"
AUDIT_HEAD = "audit:head"
SETTINGS = "queue:settings"
# Jobs by state, and the indexes that ages and slack are read from.
PENDING = "queue:pending"
PAIRS = "queue:pairs"
DELAYED = "queue:delayed"
LEASES = "queue:leases"
UNKNOWN = "queue:unknown"
BLOCKED = "queue:blocked"
CANARY = "queue:canary"
RUNNING_CANARY = "running:canary"
REFUSALS = "queue:refusals"
WAKE = "queue:wake"
COUNTERS = "counters"
SERVICE = "service"
WORKERS = "workers"
RUNS_LIVE = "runs:live"
RUNS_RECENT = "runs:recent"
RUNS_BESIDE = "runs:beside"
LOCK_RUN = "lock:run"
LOCK_BESIDE = "lock:beside"
LOCK_CONTROLLER = "lock:controller"
KILL = "kill"
# Over all queues of a server, under a prefix of their own.
ALL_KILL = "all:kill"
ALL_BREAKER = "all:breaker"
ALL_RUNS = "all:runs"
ALL_ASKED = "all:asked"
INBOX = "inbox"
NOTICES = "notices"
NOTICE_LEVELS = "notices:levels"
EPISODES_OPEN = "episodes:open"


class KeyType(StrEnum):
    """Name what TYPE says of a key."""

    STRING = "string"
    LIST = "list"
    SET = "set"
    ZSET = "zset"
    HASH = "hash"
    STREAM = "stream"


# What each of those keys is.
TYPES: Mapping[str, KeyType] = {
    **dict.fromkeys((DRAIN_STATE, ADMISSION, ROLLBACK_REASON, CANARY_OK_COUNT), KeyType.STRING),
    **dict.fromkeys((EPOCH, SEEN, SNAPSHOT, KILL, ALL_KILL, ALL_BREAKER, LOCK_RUN), KeyType.STRING),
    **dict.fromkeys((GATE, DECISION, DUPLICATES, ENDPOINT, SETTINGS, COUNTERS, SERVICE), KeyType.HASH),
    **dict.fromkeys((LOCK_CONTROLLER, LOCK_BESIDE, ALL_RUNS, AUDIT_HEAD, NOTICE_LEVELS), KeyType.HASH),
    **dict.fromkeys((GATE_LOG, RECONCILE_LOG, AUDIT, INBOX, NOTICES), KeyType.STREAM),
    **dict.fromkeys((PENDING, WAKE), KeyType.LIST),
    PAIRS: KeyType.SET,
    **dict.fromkeys((DELAYED, LEASES, UNKNOWN, BLOCKED, CANARY, RUNNING_CANARY, REFUSALS), KeyType.ZSET),
    **dict.fromkeys((WORKERS, RUNS_LIVE, RUNS_RECENT, RUNS_BESIDE, EPISODES_OPEN, ALL_ASKED), KeyType.ZSET),
}
# What further keys begin with, and what they are; an id, a class, a key, a date or a bucket follows.
FAMILY_TYPES: Mapping[str, KeyType] = {
    "approval:": KeyType.HASH,
    "cooldown:": KeyType.STRING,
    "counters:": KeyType.HASH,
    "done:": KeyType.HASH,
    "episode:": KeyType.HASH,
    "failed:": KeyType.LIST,
    "job:": KeyType.HASH,
    "payload:": KeyType.STRING,
    "provider:": KeyType.HASH,
    "queue:blocked:": KeyType.ZSET,
    "queue:delayed:": KeyType.ZSET,
    "queue:delayed:cost:": KeyType.ZSET,
    "queue:fifo:": KeyType.ZSET,
    "queue:ready:": KeyType.ZSET,
    "queue:unknown:": KeyType.ZSET,
    "run:": KeyType.HASH,
    "running:": KeyType.ZSET,
    "running:cost:": KeyType.ZSET,
    "worker:": KeyType.HASH,
}
FAMILIES: tuple[str, ...] = tuple(FAMILY_TYPES)
# Version 1 of the layout had these; what a queue of that version holds is not read by this one.
OLD_NAMES: tuple[str, ...] = ("queue:enqueued", "queue:deadlines")


def families() -> list[tuple[str, str, str]]:
    """Give how names begin and end, and their type; the first that fits counts."""
    longest_first = sorted(FAMILY_TYPES.items(), key=lambda family: -len(family[0]))
    return [(*_JOURNAL, KeyType.STREAM.value), *((start, "", kind.value) for start, kind in longest_first)]
