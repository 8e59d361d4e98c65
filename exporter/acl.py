"""Say which Redis user the exporter needs: one that can read a queue's figures and do nothing else.

Redis enforces it: the same source runs by FCALL_RO where it is loaded, else by EVAL_RO, and each command inside it is
checked against the user too.
"""

from __future__ import annotations

from sluicegate.keys import Keys

# The commands that `observe` uses inside its script; a contract test runs it with these alone.
OBSERVE_COMMANDS: tuple[str, ...] = (
    "dump", "exists", "hget", "hgetall", "hmget", "mget", "smembers", "time", "zcard", "zcount", "zrange",
    "zrangebyscore", "zscore",
)  # fmt: skip
# What carries the script there; select is for an address that names another database than 0.
TRANSPORT_COMMANDS: tuple[str, ...] = ("eval_ro", "evalsha_ro", "fcall_ro", "ping", "select")
# The keys it reads, under the queue's prefix. Jobs and payloads are not among them.
OBSERVE_KEYS: tuple[str, ...] = (
    "admission",
    "control:*",
    "counters",
    "counters:*",
    "done:*",
    "drain_state",
    "kill",
    "lock:beside",
    "lock:run",
    "provider:*",
    "queue:*",
    "run:*",
    "running:*",
    "service",
)


def acl_line(user: str, queues: tuple[str, ...]) -> str:
    """Give the ACL SETUSER line of a user that can only read these queues; PASSWORD marks the place of its own."""
    patterns = [f"%R~{Keys.for_queue(queue)(name)}" for queue in queues for name in OBSERVE_KEYS]
    commands = [f"+{command}" for command in (*TRANSPORT_COMMANDS, *OBSERVE_COMMANDS)]
    return " ".join(["ACL SETUSER", user, "reset", "on", ">PASSWORD", *patterns, "-@all", *commands])
