"""Tell a form that this service made, for this caller and this deed, from any other; each is good for one deed."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

from automation.callers import Caller

_GOOD_FOR_S = 1800
_KEPT = 500


class FormTokens:
    """Make and check tokens; their secret lives as long as this process, and no longer.

    A token that was used gives what its deed came to, so a form that is sent twice does its deed once. Bounded.
    """

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self._secret = secrets.token_bytes(32)
        self._now_s = now_s
        self._used: OrderedDict[str, str] = OrderedDict()

    def make(self, caller: Caller, place: str) -> str:
        """Give a token for a form; `place` is its whole address, so it does for no other deed and no other target."""
        body = f"{int(self._now_s())}.{secrets.token_hex(16)}"
        return f"{body}.{self._mac(body, caller, place)}"

    def is_good(self, token: str, caller: Caller, place: str) -> bool:
        """Say whether the token was made for this caller and place, not too long ago."""
        body, _, mac = token.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(body, caller, place).encode()):
            return False
        issued = body.partition(".")[0]
        return 0 <= self._now_s() - int(issued) + 1 <= _GOOD_FOR_S

    def use(self, token: str) -> str | None:
        """Take a good token: None the first time, then the mark that was left with it, '' while there is none."""
        if token in self._used:
            return self._used[token]
        self._used[token] = ""
        while len(self._used) > _KEPT:
            self._used.popitem(last=False)
        return None

    def leave(self, token: str, mark: str) -> None:
        """Leave a mark with a used token."""
        if token in self._used:
            self._used[token] = mark

    def _mac(self, body: str, caller: Caller, place: str) -> str:
        said = json.dumps([body, caller.name, caller.called, caller.role, place])
        return hmac.new(self._secret, said.encode(), hashlib.sha256).hexdigest()
