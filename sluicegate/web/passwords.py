"""Check names and passwords against bcrypt hashes without letting whoever guesses keep others waiting.

A hash is slow on purpose (some 60 ms of a core at cost 10). So it is computed in one thread beside the event loop, for
a few waiting requests at most and fewer from one address, and a pair that was right once is known again by a keyed
digest: a caller costs one hash a start of the service, and a flood of guesses costs one core and nobody's answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

import bcrypt

_MOST_WAITING = 16
_MOST_WAITING_OF_ONE_ADDRESS = 4
_WAIT_S = 1.0
# bcrypt reads no more; a longer password is nobody's.
_LONGEST_BYTES = 72


class Verdict(StrEnum):
    """Name what became of a check."""

    RIGHT = "right"
    WRONG = "wrong"
    BUSY = "busy"  # too many checks at once: the caller comes back


class Passwords:
    """Check pairs; use it inside one event loop. `close` is safe twice."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="password")
        self._under_way: dict[bytes, asyncio.Future[bool]] = {}
        self._waiting: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """Give how many checks are under way or wait for their turn."""
        return len(self._under_way)

    async def check(self, users: Mapping[str, bytes], name: str, password: str, address: str) -> Verdict:
        """Say whether the password is the one whose hash `users` holds under the name, within a second.

        A check that takes longer goes on: whoever comes back with the same pair finds its end.
        """
        hashed = users.get(name)
        digest = self._digest(name, hashed or b"", password)
        known = self._right.get(name)
        if hashed is not None and known is not None and hmac.compare_digest(known, digest):
            return Verdict.RIGHT
        checking = self._under_way.get(digest)
        if checking is None:
            if self.waiting >= _MOST_WAITING or self._waiting[address] >= _MOST_WAITING_OF_ONE_ADDRESS:
                return Verdict.BUSY
            checking = self._begin(users, name, password, address, digest)
        done, _ = await asyncio.wait({checking}, timeout=_WAIT_S)
        if not done:
            return Verdict.BUSY
        return Verdict.RIGHT if checking.result() and hashed is not None else Verdict.WRONG

    def close(self) -> None:
        """Let the thread end with the check under way."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(
        self, users: Mapping[str, bytes], name: str, password: str, address: str, digest: bytes
    ) -> asyncio.Future[bool]:
        # An unknown name costs the same time as a wrong password, so neither is told from the other.
        hashed = users.get(name, next(iter(users.values())))
        checking = asyncio.get_running_loop().run_in_executor(self._thread, matches, password, hashed)
        self._under_way[digest] = checking
        self._waiting[address] += 1

        def ended(check: asyncio.Future[bool]) -> None:
            del self._under_way[digest]
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]
            if not check.cancelled() and check.exception() is None and check.result() and name in users:
                # A name has one hash, so one digest a user is kept.
                self._right = {user: right for user, right in self._right.items() if user in users} | {name: digest}

        checking.add_done_callback(ended)
        return checking

    def _digest(self, name: str, hashed: bytes, password: str) -> bytes:
        """Give what a right pair is known by: the hash is in it, so a changed one makes the pair unknown."""
        parts = (name.encode(), hashed, password.encode())
        text = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.digest(self._key, text, hashlib.sha256)


def matches(password: str, hashed: bytes) -> bool:
    """Say whether a password has this bcrypt hash; one that bcrypt would cut short has none."""
    given = password.encode()
    # The time is spent either way, so a long password is not told from a wrong one.
    found = bcrypt.checkpw(given[:_LONGEST_BYTES], hashed)
    return found and len(given) <= _LONGEST_BYTES
