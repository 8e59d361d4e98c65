"""Judge from what a server says of itself whether a queue on it keeps what it decides (contract §9). Pure.

What a server does not show to this user is said to be unseen, and never taken for sound.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sluicegate.keys import DEFAULT_QUEUE
from sluicegate.remedies import QUEUE_APPLY, QUEUE_INIT, QUEUE_UPGRADE, REBUILD
from sluicegate.replies import StrangeKeys

_NONE_STRANGE = StrangeKeys()


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
class Seen:
    """Hold what could be seen; None for what is not shown.

    info and config as the server names things; libraries by name, and loaded the digest of the code under this
    version's name; skew_s is this machine's clock minus the server's, known to within rtt_s. Without a settings file of
    one's own, own_digest is None. `unread` says why the figures can't be read; `gate` is empty then.
    `lived`: something was counted here.
    """

    queue: str
    info: Mapping[str, str] | None
    config: Mapping[str, str] | None
    libraries: tuple[str, ...] | None
    loaded: str | None
    skew_s: float
    rtt_s: float
    gate: str
    stored: Mapping[str, str]
    own_digest: str | None
    own_library: str
    own_code: str
    resolver_url: bool
    unread: str = ""
    lived: bool = False
    strange: StrangeKeys | None = _NONE_STRANGE

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


def examine(seen: Seen) -> tuple[Finding, ...]:
    """Give every finding, in the order in which they are looked at."""
    return tuple(finding for look in _LOOKS for finding in look(seen))


def losses(seen: Seen) -> tuple[Loss, ...]:
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
    moved = "nothing moves" if replicas in ("0", None) else "what the replica had not received yet"
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


def _fsync(seen: Seen) -> str | None:
    return (seen.config or {}).get("appendfsync")


def _persistence(seen: Seen) -> Iterator[Finding]:
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


def _saves(seen: Seen) -> Iterator[Finding]:
    saves = (seen.config or {}).get("save")
    if saves is None:
        yield Finding(Level.UNSEEN, "save", "Whether the server saves whole files is not shown.", _ASK)
    else:
        said = f"The server saves whole files: {saves}." if saves else "The server saves no whole files."
        yield Finding(Level.NOTE, "save", said)
    if (status := seen.value("rdb_last_bgsave_status")) not in (None, "ok"):
        hint = "Look at the server's log: it may refuse every write (stop-writes-on-bgsave-error)."
        yield Finding(Level.FIX, "rdb_last_bgsave_status", f"The last save ended as {status}.", hint)


def _memory(seen: Seen) -> Iterator[Finding]:
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


def _replication(seen: Seen) -> Iterator[Finding]:
    role = seen.value("role")
    if role is None:
        yield Finding(Level.UNSEEN, "role", "Whether this is a primary is not shown.", _ASK)
    elif role != "master":
        yield Finding(Level.FIX, "role", "This is a replica: nothing can be written here.", "Name the primary.")
    else:
        replicas = int(seen.value("connected_slaves") or 0)
        yield Finding(Level.OK, "role", f"This is a primary with {replicas} replicas.")
        least = (seen.config or {}).get("min-replicas-to-write")
        if replicas and least == "0":
            yield Finding(
                Level.WARN,
                "min-replicas-to-write",
                "A primary that is cut off from its replicas goes on deciding, and what it decides is lost later.",
                "CONFIG SET min-replicas-to-write 1.",
            )
        elif replicas and least is None:
            yield Finding(Level.UNSEEN, "min-replicas-to-write", "min-replicas-to-write is not shown.", _ASK)


def _cluster(seen: Seen) -> Iterator[Finding]:
    if seen.value("cluster_enabled") != "1":
        return
    if seen.queue == DEFAULT_QUEUE:
        hint = "Give the queue a name: its keys then share the slot of {name}."
        yield Finding(Level.FIX, "cluster", "This is a cluster, and the keys of queue default lie in many slots.", hint)
    else:
        yield Finding(Level.NOTE, "cluster", "This is a cluster: the function library is loaded on every primary.")


def _library(seen: Seen) -> Iterator[Finding]:
    if seen.libraries is None:
        said = "FUNCTION is not allowed to this user, or not known: the same source runs as scripts."
        yield Finding(Level.NOTE, "library", said)
    elif seen.loaded not in (None, "", seen.own_code):
        yield Finding(
            Level.FIX,
            "library",
            f"The function library {seen.own_library} has other code under the same name: {seen.loaded} is loaded, "
            f"this version has {seen.own_code}.",
            f"Finish the roll-out of one version, then `{QUEUE_UPGRADE}` from it replaces the library.",
        )
    elif seen.own_library in seen.libraries:
        yield Finding(Level.OK, "library", f"The function library {seen.own_library} is loaded.")
    else:
        yield Finding(
            Level.WARN,
            "library",
            f"The function library {seen.own_library} is not loaded; there {_are(seen.libraries)}.",
            "The first client that needs it loads it; without an append-only file it is gone after a restart.",
        )


def _are(libraries: tuple[str, ...]) -> str:
    return f"are {', '.join(libraries)}" if libraries else "is none"


def _queue(seen: Seen) -> Iterator[Finding]:
    if "contract" not in seen.stored and seen.lived:
        apply, open_gate = REBUILD
        hint = f"`{apply}` writes it anew, then `{open_gate}` opens the gate."
        yield Finding(
            Level.FIX, "queue", f"Queue {seen.queue} has lost its contract; its jobs are not forgotten.", hint
        )
        return
    if "contract" not in seen.stored:
        hint = f"`{QUEUE_INIT}` opens it, `sluicegate queue restore` brings it back."
        yield Finding(Level.WARN, "queue", f"Queue {seen.queue} is not open.", hint)
        return
    digest = seen.stored.get("digest", "")
    if seen.own_digest is None:
        said = f"Contract {digest} is in force; no settings file was named, so it is compared with nothing."
        yield Finding(Level.NOTE, "settings", said, "`--settings FILE` compares it with yours.")
    elif digest == seen.own_digest:
        yield Finding(Level.OK, "settings", f"Contract {digest} is in force, and these settings hold the same.")
    else:
        yield Finding(
            Level.WARN,
            "settings",
            f"Contract {digest} is in force; these settings hold {seen.own_digest}.",
            f"`sluicegate queue settings --settings FILE` shows both, `{QUEUE_APPLY}` puts these into force.",
        )
    if seen.unread:
        yield Finding(Level.FIX, "gate", f"The figures can't be read, so nobody watches: {seen.unread}", _UNREAD_HINT)
    else:
        yield Finding(Level.NOTE, "gate", f"The gate is in {seen.gate}.")
    yield from _contract(seen)


def _contract(seen: Seen) -> Iterator[Finding]:
    try:
        contract = json.loads(seen.stored["contract"])
        findings = (*_effects(contract["classes"], seen), *_deadlines(contract["classes"], contract["thresholds"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        hint = f"`{QUEUE_APPLY}` writes it anew."
        findings = (Finding(Level.FIX, "contract", "The stored contract can't be read.", hint),)
    yield from findings


def _effects(classes: Mapping[str, Mapping[str, object]], seen: Seen) -> Iterator[Finding]:
    unsafe = sorted(name for name, declared in classes.items() if declared.get("effects") == "unsafe")
    for name in unsafe:
        said = f"Class {name} is unsafe to repeat: an ambiguous outcome waits for a decision as unknown."
        hint = "" if seen.resolver_url else "Give its provider idempotency keys, or set reconcile.http_url to ask it."
        yield Finding(Level.NOTE if seen.resolver_url else Level.WARN, "effects", said, hint)


def _deadlines(classes: Mapping[str, Mapping[str, float]], bounds: Mapping[str, float]) -> Iterator[Finding]:
    """Name classes whose new jobs alone are under a bound of the slack: where they are many, the gate obeys them."""
    for name, declared in sorted(classes.items()):
        deadline_s = declared["deadline_ms"] / 1000
        reject_s, recovered_s = bounds["reject_slack_p10_seconds"], bounds["recovered_slack_p10_seconds"]
        if deadline_s > recovered_s:
            continue
        bound, does = f"recovered_slack_p10_seconds, {recovered_s:g} s", "a closed gate does not open again"
        if deadline_s <= reject_s:
            bound, does = f"reject_slack_p10_seconds, {reject_s:g} s", "admission closes"
        said = (
            f"The deadline of class {name}, {deadline_s:g} s, is not above {bound}: "
            f"where a tenth of the unfinished jobs is of it, {does}."
        )
        hint = "Lower the thresholds of slack under the shortest deadline, or give the class a queue of its own."
        yield Finding(Level.WARN, "deadlines", said, hint)


_UNREAD_HINT = "Look at the findings on keys: one of the wrong type stops every look at the queue."
# So many are named one by one.
_NAMED = 20


def _keys(seen: Seen) -> Iterator[Finding]:
    if seen.strange is None:
        yield Finding(Level.UNSEEN, "keys", "The types of the queue's keys are not shown.", _ASK_KEYS)
        return
    for name, kind, wanted in seen.strange.wrong[:_NAMED]:
        yield Finding(
            Level.FIX,
            "keys",
            f"The key {name} is of type {kind}, not {wanted}: whoever wrote it has overwritten what stood there.",
            f"`RENAME {name} aside:{name}` lets the queue go on without it; jobs that were named only there stay as "
            "records (`sluicegate queue show JOB`), and no worker finds them.",
        )
    if len(seen.strange.wrong) > _NAMED:
        more = len(seen.strange.wrong) - _NAMED
        yield Finding(
            Level.FIX, "keys", f"{more} more keys are of a wrong type.", "Rename those above, then look again."
        )
    if old := seen.strange.old:
        hint = "Let that version finish its jobs, then use an empty database or another queue name."
        said = f"{len(old)} keys were written by version 1 of the layout, such as {old[0]}: this version reads none."
        yield Finding(Level.FIX, "layout", said, hint)
    if lost := seen.strange.lost:
        job_id, container = lost[0]
        others = f", nor {len(lost) - 1} others like it" if len(lost) > 1 else ""
        said = f"Job {job_id} is open by its record, and {container} does not name it: nobody finds it{others}."
        hint = "`sluicegate queue show JOB` shows it; what is still wanted is to be submitted under another key."
        yield Finding(Level.FIX, "jobs", said, hint)
    if not seen.strange.wrong:
        yield Finding(Level.OK, "keys", "Every key of the queue is of its type.")


# Deadlines given as instants are wrong by the skew; past the margin jobs are started that can't end in time.
_SKEW_NOTED_S = 0.5
_SKEW_TOO_FAR_S = 2.0


def _clocks(seen: Seen) -> Iterator[Finding]:
    skew_s = max(0.0, abs(seen.skew_s) - seen.rtt_s)
    said = f"This machine's clock and the server's differ by {abs(seen.skew_s):.3f} s (± {seen.rtt_s:.3f} s)."
    if skew_s > _SKEW_TOO_FAR_S:
        hint = "Set both by NTP: deadlines given as instants are wrong by that much."
        yield Finding(Level.FIX, "clock", said, hint)
    else:
        yield Finding(Level.WARN if skew_s > _SKEW_NOTED_S else Level.OK, "clock", said)


_ASK_KEYS = "A user with SCAN and TYPE sees them."
_ASK = "A user with INFO and CONFIG|GET sees it; or look at the server's configuration file."
_LOOKS: tuple[Callable[[Seen], Iterator[Finding]], ...] = (
    _persistence,
    _saves,
    _memory,
    _replication,
    _cluster,
    _library,
    _queue,
    _keys,
    _clocks,
)
