"""Judge from what a server says of itself whether a queue on it keeps what it decides (contract §9). Pure.

What a server does not show to this user is said to be unseen, and never taken for sound.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sluicegate.keys import DEFAULT_QUEUE
from sluicegate.remedies import QUEUE_APPLY, QUEUE_INIT, QUEUE_UPGRADE, REBUILD
from sluicegate.replies import StrangeKeys
from sluicegate.server_findings import LOOKS as SERVER_LOOKS
from sluicegate.server_findings import Finding, Level, ServerSeen

_NONE_STRANGE = StrangeKeys()


@dataclass(frozen=True, slots=True)
class Seen(ServerSeen):
    """Hold what could be seen; None for what is not shown.

    Libraries by name, and loaded the digest of the code under this version's name; library_by_primary the same by host
    and port in a cluster ("" without any, None where it is not known; empty without its nodes). skew_s is this clock
    minus the server's, known to within rtt_s. Without a settings file of one's own, own_digest is None. `unread`
    says why the figures can't be read; `gate` is empty then. `lived`: something was counted here.
    """

    queue: str
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
    library_by_primary: Mapping[str, str | None] | None = None


def examine(seen: Seen) -> tuple[Finding, ...]:
    """Give every finding, in the order in which they are looked at."""
    return tuple(finding for look in _LOOKS for finding in look(seen))


def _cluster(seen: Seen) -> Iterator[Finding]:
    if seen.value("cluster_enabled") != "1":
        return
    if seen.queue == DEFAULT_QUEUE:
        hint = "Give the queue a name: its keys then share the slot of {name}."
        yield Finding(Level.FIX, "cluster", "This is a cluster, and the keys of queue default lie in many slots.", hint)
    elif seen.library_by_primary is None:
        said = "Whether every primary of this cluster has the function library is not shown."
        yield Finding(Level.UNSEEN, "cluster", said, "A user with CLUSTER|SLOTS and FUNCTION|LIST sees it.")
    elif not seen.library_by_primary:
        said = "This is a cluster of which one node is named: a queue whose slot moves is out of reach."
        yield Finding(Level.WARN, "cluster", said, "Name the cluster's nodes in redis.cluster_nodes.")
    else:
        yield from _primaries(seen.library_by_primary, seen.own_code)


def _primaries(code_by_primary: Mapping[str, str | None], own_code: str) -> Iterator[Finding]:
    """Judge what each primary of a cluster has of the function library: the queue's slot may move to any of them."""
    silent = ", ".join(place for place, code in code_by_primary.items() if code is None)
    without = ", ".join(place for place, code in code_by_primary.items() if code == "")
    other = ", ".join(place for place, code in code_by_primary.items() if code not in (None, "", own_code))
    if other:
        hint = f"Finish the roll-out of one version, then `{QUEUE_UPGRADE}` from it replaces the library everywhere."
        yield Finding(Level.FIX, "cluster", f"Primaries of this cluster have other code in the library: {other}.", hint)
    if without:
        hint = f"`{QUEUE_UPGRADE}` loads it; else the queue's next client does once the slot has moved there."
        yield Finding(
            Level.WARN, "cluster", f"Primaries of this cluster without the function library: {without}.", hint
        )
    if silent:
        said = f"What these primaries of the cluster have is not known, they don't answer or don't say: {silent}."
        yield Finding(Level.UNSEEN, "cluster", said, "Look again once they answer, as a user with FUNCTION|LIST.")
    if not (other or without or silent):
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
_LOOKS: tuple[Callable[[Seen], Iterator[Finding]], ...] = (
    *SERVER_LOOKS,
    _cluster,
    _library,
    _queue,
    _keys,
    _clocks,
)
