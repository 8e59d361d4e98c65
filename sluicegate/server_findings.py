"""Judge from what a server says of itself what it keeps, what it evicts and what it can lose (contract §9). Pure.

What a server does not show to this user is said to be unseen, and never taken for sound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

_LEAST_REPLICAS = "min-replicas-to-write"
# What CONFIG GET is asked for.
CONFIG_NAMES = ("appendfsync", "save", "maxmemory-policy", _LEAST_REPLICAS, "appendonly")
_ASK = "A user with INFO and CONFIG|GET sees it; or look at the server's configuration file."


class Level(StrEnum):
    """Name how bad a finding is."""

    OK = "ok"
    NOTE = "note"  # to know, nothing to do
    WARN = "warn"  # may be right; somebody should have decided it
    FIX = "fix"  # something will be lost or will not work: exit code 1
    UNSEEN = "unseen"  # the server does not show it to this user


@dataclass(frozen=True, slots=True)
class Finding:
    """Say what one look came to, and what to do."""

    level: Level
    name: str
    said: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """Hold what a server shows of itself, as it names things; None for what it does not show."""

    info: Mapping[str, str] | None
    config: Mapping[str, str] | None

    def value(self, info_name: str, config_name: str = "") -> str | None:
        """Give a setting from INFO, which needs no permission of its own, else from CONFIG."""
        for source, name in ((self.info, info_name), (self.config, config_name or info_name)):
            if source is not None and name in source:
                return source[name]
        return None


@dataclass(frozen=True, slots=True)
class Loss:
    """Say what can be lost of what was answered when something happens."""

    happens: str
    lost: str


def unsound(server: ServerSeen) -> tuple[Finding, ...]:
    """Give what must be fixed before a recovery may lean on the server: what it keeps, what it evicts, what it is."""
    looks = (_persistence, _memory, _replication)
    return tuple(finding for look in looks for finding in look(server) if finding.level is Level.FIX)


def losses(seen: ServerSeen) -> tuple[Loss, ...]:
    """Say what the durability in force can lose (docs/concepts/durability.md)."""
    appends, fsync, saves = seen.value("aof_enabled"), _fsync(seen), seen.value("save")
    if appends is None:
        server = host = "not known: persistence is not shown to this user"
    elif appends in ("1", "yes"):
        server, host = _AOF_LOSSES.get(fsync or "", ("at most what `appendfsync` says, which is not shown",) * 2)
    elif saves:
        server = host = f"everything since the last save (save {saves})"
    else:
        server = host = "everything" if saves is not None else "everything since the last save, if there is one"
    replicas = seen.value("connected_slaves")
    if replicas is None:
        moved = "not known: replicas are not shown to this user"
    else:
        moved = "nothing moves" if replicas == "0" else "what the replica had not received yet"
    return (
        Loss("a client crashes", "nothing"),
        Loss("the server process is killed", server),
        Loss("the host is lost, its disk survives", host),
        Loss("the disk is lost", "everything since the last `queue snapshot` kept elsewhere"),
        Loss("a replica takes over", moved),
    )


_AOF_LOSSES = {
    "always": ("nothing that was answered", "nothing that was answered"),
    "everysec": ("rarely something, at most about a second", "up to about a second"),
    "no": ("what the kernel had not written yet", "some 30 s, as long as the kernel waits"),
}


def _fsync(seen: ServerSeen) -> str | None:
    return (seen.config or {}).get("appendfsync")


def _persistence(seen: ServerSeen) -> Iterator[Finding]:
    appends = seen.value("aof_enabled")
    if appends is None:
        yield Finding(Level.UNSEEN, "appendonly", "Whether decisions are written to a file is not shown.", _ASK)
        return
    if appends not in ("1", "yes"):
        yield Finding(
            Level.FIX,
            "appendonly",
            "appendonly is off: decisions that were answered are lost when the server ends.",
            "CONFIG SET appendonly yes, and in the server's configuration file.",
        )
        return
    yield Finding(Level.OK, "appendonly", "Decisions are written to an append-only file.")
    fsync = _fsync(seen)
    if fsync is None:
        yield Finding(Level.UNSEEN, "appendfsync", "How often the file is forced to the disk is not shown.", _ASK)
    elif fsync == "no":
        hint = "CONFIG SET appendfsync everysec, or always."
        yield Finding(Level.FIX, "appendfsync", "appendfsync is no: the kernel decides when a decision is kept.", hint)
    else:
        yield Finding(Level.OK, "appendfsync", f"appendfsync is {fsync}.")
    for name in ("aof_last_write_status", "aof_last_bgrewrite_status"):
        if (status := seen.value(name)) not in (None, "ok"):
            hint = "Look at the server's log, and at the space on its disk."
            yield Finding(Level.FIX, name, f"{name} is {status}: the append-only file fails.", hint)


def _saves(seen: ServerSeen) -> Iterator[Finding]:
    saves = (seen.config or {}).get("save")
    if saves is None:
        yield Finding(Level.UNSEEN, "save", "Whether the server saves whole files is not shown.", _ASK)
    else:
        said = f"The server saves whole files: {saves}." if saves else "The server saves no whole files."
        yield Finding(Level.NOTE, "save", said)
    if (status := seen.value("rdb_last_bgsave_status")) not in (None, "ok"):
        hint = "Look at the server's log: it may refuse every write (stop-writes-on-bgsave-error)."
        yield Finding(Level.FIX, "rdb_last_bgsave_status", f"The last save ended as {status}.", hint)


def _memory(seen: ServerSeen) -> Iterator[Finding]:
    policy, limit = seen.value("maxmemory_policy", "maxmemory-policy"), seen.value("maxmemory")
    if policy is None:
        yield Finding(Level.UNSEEN, "maxmemory-policy", "Whether the server evicts keys is not shown.", _ASK)
    elif policy != "noeviction":
        yield Finding(
            Level.FIX,
            "maxmemory-policy",
            f"maxmemory-policy is {policy}: with memory full the server throws jobs and leases away.",
            "CONFIG SET maxmemory-policy noeviction: then admissions are refused and everything else goes on.",
        )
    else:
        yield Finding(Level.OK, "maxmemory-policy", "Nothing is evicted (noeviction).")
    if limit == "0":
        yield Finding(Level.NOTE, "maxmemory", "maxmemory is 0: the machine's memory is the only bound.")


def _replication(seen: ServerSeen) -> Iterator[Finding]:
    role = seen.value("role")
    if role is None:
        yield Finding(Level.UNSEEN, "role", "Whether this is a primary is not shown.", _ASK)
    elif role != "master":
        yield Finding(Level.FIX, "role", "This is a replica: nothing can be written here.", "Name the primary.")
    else:
        yield Finding(Level.OK, "role", f"This is a primary; replicas connected: {_connected(seen)}.")


def _connected(seen: ServerSeen) -> int:
    return int(seen.value("connected_slaves") or 0)


def _replicas(seen: ServerSeen) -> Iterator[Finding]:
    """Judge whether a write has the replicas that it needs, now and once one of them has taken over."""
    least = (seen.config or {}).get(_LEAST_REPLICAS)
    role = seen.value("role")
    if role is None:
        said = f"{_LEAST_REPLICAS} is {least or 'not shown'}; which replicas are in touch is not shown."
        yield Finding(Level.UNSEEN, _LEAST_REPLICAS, said, _ASK)
    if role != "master":
        return
    # Shown where the rule is on; a replica that lags for too long is not among them.
    in_touch = seen.value("min_slaves_good_slaves")
    if in_touch is not None:
        yield from _least(int(in_touch), _connected(seen), least)
    elif _connected(seen):
        yield Finding(
            Level.WARN,
            _LEAST_REPLICAS,
            "A primary that is cut off from its replicas goes on deciding, and what it decides is lost later.",
            f"CONFIG SET {_LEAST_REPLICAS} 1 with a min-replicas-max-lag of a few seconds, and have two replicas.",
        )


def _least(in_touch: int, connected: int, shown: str | None) -> Iterator[Finding]:
    least = int(shown) if shown is not None else 1  # or more, as the rule is on
    said = f"{_LEAST_REPLICAS} is {shown or 'not shown'}; replicas in touch: {in_touch}."
    if in_touch < least:
        hint = f"Bring the replicas back, or lower {_LEAST_REPLICAS}."
        yield Finding(Level.FIX, _LEAST_REPLICAS, f"{said} Every write is refused.", hint)
    elif shown is None:
        yield Finding(Level.UNSEEN, _LEAST_REPLICAS, said, _ASK)
    elif in_touch == least:
        left = "The one that takes over will have one fewer, and refuse every write until the old primary is back."
        add = "Add a replica, unless one that may take over has replicas of its own, which are not seen from here."
        hint = add if in_touch == connected else "Bring the replicas back that are not in touch."
        yield Finding(Level.WARN, _LEAST_REPLICAS, f"{said} {left}", hint)


LOOKS: tuple[Callable[[ServerSeen], Iterator[Finding]], ...] = (_persistence, _saves, _memory, _replication, _replicas)
