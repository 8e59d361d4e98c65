"""The names of all keys of a queue, each once (DESIGN, "Redis keys").

The functions build the same names from the prefix; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_QUEUE = "default"


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
        return f"{self.prefix}run:{run_id}:journal"

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
WORKERS = "workers"
RUNS_LIVE = "runs:live"
RUNS_RECENT = "runs:recent"
LOCK_RUN = "lock:run"
LOCK_CONTROLLER = "lock:controller"
KILL = "kill"
BREAKER = "breaker"
INBOX = "inbox"
EPISODES_OPEN = "episodes:open"

# What further keys begin with; an id, a class, a key, a date or a bucket follows.
FAMILIES: tuple[str, ...] = (
    "approval:",
    "cooldown:",
    "counters:",
    "done:",
    "episode:",
    "failed:",
    "job:",
    "payload:",
    "provider:",
    "queue:blocked:",
    "queue:delayed:",
    "queue:delayed:cost:",
    "queue:fifo:",
    "queue:ready:",
    "queue:unknown:",
    "run:",
    "running:",
    "running:cost:",
    "worker:",
)
