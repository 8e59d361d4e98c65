"""Does every accepted job have an end, or stand openly as unknown or blocked? And is it one job a key?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from drill.checker.finding import Finding, Weight
from drill.checker.logs import Ask, Logs

ENDS = frozenset({"succeeded", "failed", "expired"})
OPEN = frozenset({"unknown", "blocked"})
GONE = "gone"


def accepted_keys(logs: Logs) -> frozenset[str]:
    """Give the keys of which some caller heard that they are accepted."""
    return frozenset(ask.key for ask in logs.asks if ask.answer == "accepted")


def last_states(logs: Logs) -> Mapping[str, str]:
    """Give key → what was told of it last.

    A look without an answer tells nothing, and neither does one from before the job was accepted.
    """
    accepted_at: dict[str, float] = {}
    for ask in logs.asks:
        if ask.answer == "accepted":
            accepted_at[ask.key] = min(ask.heard, accepted_at.get(ask.key, ask.heard))
    return {
        look.key: look.state
        for look in logs.seen
        if look.state != "unanswered" and look.at >= accepted_at.get(look.key, 0)
    }


def ends(logs: Logs) -> Finding:
    """Find accepted jobs of which the queue knows that they are neither at an end nor open to a person."""
    states, accepted = last_states(logs), accepted_keys(logs)
    broken = tuple(
        f"{key}: {states.get(key, 'nobody looked at it')}"
        for key in sorted(accepted)
        if states.get(key, "") not in ENDS | OPEN | {GONE}
    )
    return Finding("ends", "every accepted job has an end, or is openly unknown or blocked", len(accepted), broken)


def lost(logs: Logs, weight: Weight) -> Finding:
    """Find accepted jobs that the queue no longer knows."""
    states, accepted = last_states(logs), accepted_keys(logs)
    broken = tuple(f"{key}: accepted, then gone" for key in sorted(accepted) if states.get(key) == GONE)
    return Finding("lost", "no accepted job is lost", len(accepted), broken, weight)


def one_id(logs: Logs) -> Finding:
    """Find keys that were given more than one job."""
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for ask in logs.asks:
        if ask.answer in ("accepted", "refused"):
            ids[ask.key].add(ask.job_id)
    broken = tuple(f"{key}: {', '.join(sorted(found))}" for key, found in ids.items() if len(found) > 1)
    return Finding("one_id", "one key, one job id", len(ids), broken)


def one_acceptance(logs: Logs, weight: Weight) -> Finding:
    """Find keys that were accepted as new more than once."""
    counts = Counter(ask.key for ask in logs.asks if ask.answer == "accepted" and ask.fresh)
    broken = tuple(f"{key}: accepted anew {count} times" for key, count in counts.items() if count > 1)
    return Finding("one_acceptance", "one key is accepted once; repeats are told so", len(counts), broken, weight)


def accepted_for_good(logs: Logs, weight: Weight) -> Finding:
    """Find refusals of a key that had been accepted: no refusal can come after, and none before that was still live."""
    looked_at, broken = 0, []
    for key, asks in _by_key(ask for ask in logs.asks if not ask.other).items():
        for accepted in (ask for ask in asks if ask.answer == "accepted"):
            for refused in (ask for ask in asks if ask.answer == "refused" and ask.heard >= accepted.sent):
                looked_at += 1
                wait_s = refused.retry_after_s
                # Refused first, come due, then accepted: the one order that is left.
                if wait_s is None or accepted.heard < refused.sent + wait_s:
                    broken.append(f"{key}: accepted at {accepted.heard:.3f}, refused at {refused.heard:.3f}")
            looked_at += 1
    return Finding("accepted_for_good", "what is accepted stays accepted", looked_at, tuple(broken), weight)


def conflicts(logs: Logs, weight: Weight) -> Finding:
    """Find answers to another payload under a key that had been decided which are not `conflict`."""
    looked_at, broken = 0, []
    for key, asks in _by_key(logs.asks).items():
        decided_at = min(
            (ask.heard for ask in asks if ask.answer in ("accepted", "refused") and not ask.other), default=0
        )
        for ask in asks:
            if not ask.other or ask.answer not in ("accepted", "refused") or not 0 < decided_at <= ask.sent:
                continue
            looked_at += 1
            if ask.answer == "accepted" or ask.reason != "conflict":
                broken.append(f"{key}: another payload was answered {ask.answer} {ask.reason}".rstrip())
    return Finding("conflicts", "another payload under a key is a conflict", looked_at, tuple(broken), weight)


def sent_twice(logs: Logs) -> Finding:
    """Find keys that were submitted only once: the run did not do what it was to do."""
    counts = Counter(ask.key for ask in logs.asks if not ask.other)
    broken = tuple(f"{key}: submitted once" for key, count in counts.items() if count < 2)
    return Finding("sent_twice", "every submit was sent at least twice", len(counts), broken)


def troubles(logs: Logs) -> Finding:
    """Find answers that no caller is promised."""
    broken = tuple(f"{ask.key}: {ask.reason}" for ask in logs.asks if ask.answer == "trouble")
    return Finding("trouble", "every answer is one that callers are promised", len(logs.asks), broken)


def _by_key(asks: Iterable[Ask]) -> Mapping[str, list[Ask]]:
    grouped: defaultdict[str, list[Ask]] = defaultdict(list)
    for ask in asks:
        grouped[ask.key].append(ask)
    return grouped
