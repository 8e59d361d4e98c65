"""Was anything done twice, done for nobody, or called done when it was not? From the provider's own log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from drill.checker.finding import Finding, Weight
from drill.checker.logs import Effect, Logs

NONE, KEYED, UNSAFE = "none", "keyed", "unsafe"
_SUCCEEDED = "succeeded"


def declared(logs: Logs) -> Mapping[str, str]:
    """Give key → what a repeat of it does, as its caller declares it."""
    return {ask.key: ask.effects for ask in logs.asks if not ask.other}


def effects_of_jobs(logs: Logs) -> tuple[Effect, ...]:
    """Give the effects without those of canaries, which a recovery asks for."""
    return tuple(effect for effect in logs.effects if not effect.canary)


def doubled(logs: Logs, kind: str, weight: Weight) -> Finding:
    """Find keys of one kind of effect under which the provider acted more than once."""
    kinds = declared(logs)
    counts = Counter(effect.key for effect in effects_of_jobs(logs) if kinds.get(effect.key or "") == kind)
    broken = tuple(f"{key}: done {count} times" for key, count in counts.items() if count > 1)
    says = f"no side effect twice ({kind})" if kind != NONE else "repeats where a repeat does nothing (none)"
    return Finding(f"twice_{kind}", says, len(counts), broken, weight)


def strangers(logs: Logs) -> Finding:
    """Find effects under a key that no caller sent, or whose every submission was answered with a refusal."""
    possible = {ask.key for ask in logs.asks if ask.answer in ("accepted", "unanswered") and not ask.other}
    done = effects_of_jobs(logs)
    broken = tuple(f"{effect.key}: done at {effect.at:.3f}" for effect in done if effect.key not in possible)
    return Finding("strangers", "nothing was done that was not admitted", len(done), broken)


def empty_successes(logs: Logs) -> Finding:
    """Find jobs that were called succeeded and of which the provider knows nothing."""
    done = {effect.key for effect in logs.effects}
    succeeded = {look.key for look in logs.seen if look.state == _SUCCEEDED}
    broken = tuple(f"{key}: succeeded, and the provider did nothing" for key in sorted(succeeded - done))
    return Finding("empty_success", "what is called succeeded was done", len(succeeded), broken)
