"""Another client of the same Redis: `python -m bench.waiting URL`.

For every line on stdin, a number of seconds, it pings all that time and answers with one line: JSON, a list of
[monotonic seconds when it was sent, milliseconds it took].
"""

from __future__ import annotations

import json
import sys
import time

import redis

# Between two pings; a client that never pauses would itself be what the others wait for.
_PAUSE_S = 0.0005


def ping_for(client: redis.Redis, seconds: float) -> list[tuple[float, float]]:
    waits = []
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        client.ping()
        waits.append((began, (time.monotonic() - began) * 1000))
        time.sleep(_PAUSE_S)
    return waits


def main() -> None:
    client = redis.Redis.from_url(sys.argv[1])
    client.ping()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(ping_for(client, float(line))), flush=True)


if __name__ == "__main__":
    main()
