"""Read everything a queue holds in one go, as raw keys: no command of the library is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sluicegate.keys import PAIRS
from tests.invariants import full_record

Fields = Mapping[str, str]

# Only what these two streams have taken in since the last look is read; journals are the executor's.
STREAMS = ("control:log", "reconcile:log")

_SCRIPT = """#!lua flags=no-writes
local out = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, value = redis.call('TYPE', key).ok, ''
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'set' then value = redis.call('SMEMBERS', key)
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'string' then value = redis.call('GET', key)
  elseif key == 'control:log' then value = redis.call('XRANGE', key, '(' .. ARGV[1], '+')
  elseif key == 'reconcile:log' then value = redis.call('XRANGE', key, '(' .. ARGV[2], '+') end
  out[#out + 1] = { key, kind, value, redis.call('PEXPIRETIME', key) }
end
return out
"""


@dataclass(frozen=True)
class Dump:
    """Hold the raw keys of one instant; streams hold only what is new, `ends` when a key goes (ms of real time)."""

    hashes: dict[str, Fields] = field(default_factory=dict)
    zsets: dict[str, dict[str, float]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    streams: dict[str, list[tuple[str, Fields]]] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    pairs: set[str] = field(default_factory=set)
    read_at_ms: int = 0

    def family(self, prefix: str) -> Iterator[tuple[str, Fields]]:
        """Give the hashes whose key starts so, by what follows."""
        return ((key.removeprefix(prefix), fields) for key, fields in self.hashes.items() if key.startswith(prefix))

    # Asked for by every law after each command, of a dump that is whole by then.
    @cached_property
    def jobs(self) -> dict[str, Fields]:
        """Give the jobs with the fields that a record leaves out while they have their first values."""
        return {name: full_record(name, fields) for name, fields in self.family("job:") if fields["state"] != "refused"}

    @cached_property
    def refusals(self) -> dict[str, Fields]:
        return {name: fields for name, fields in self.family("job:") if fields["state"] == "refused"}

    def news(self, stream: str) -> list[Fields]:
        return [fields for _, fields in self.streams.get(stream, [])]


class Reader:
    """Take dumps of one server; remembers how far it has read the streams."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._script = client.register_script(_SCRIPT)
        self._last = dict.fromkeys(STREAMS, "0-0")

    def read(self) -> Dump:
        rows: list[Any] = self._script(args=[self._last[name] for name in STREAMS])
        dump = Dump(read_at_ms=int(time.time() * 1000))
        for key, kind, value, ends_at in rows:
            self._take(dump, key, kind, value)
            if ends_at > 0:
                dump.ends[key] = ends_at
        for name, entries in dump.streams.items():
            if entries:
                self._last[name] = entries[-1][0]
        return dump

    def _take(self, dump: Dump, key: str, kind: str, value: Any) -> None:
        if kind == "hash":
            dump.hashes[key] = _paired(value)
        elif kind == "zset":
            dump.zsets[key] = {member: float(score) for member, score in _paired(value).items()}
        elif key == PAIRS:
            dump.pairs.update(value)
        elif kind == "list":
            dump.lists[key] = value
        elif kind == "string":
            dump.strings[key] = value
        elif key in STREAMS:
            dump.streams[key] = [(entry, _paired(flat)) for entry, flat in value]


def _paired(flat: list[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
