"""Ask a server all the time, and say at the end how long the longest wait was: `python -m bench.asking URL`.

On a bare socket, and with the garbage collector off, so that the wait is the server's and the machine's.
"""

from __future__ import annotations

import gc
import json
import select
import socket
import sys
import time
from urllib.parse import urlsplit

_EVERY_S = 0.0005


def main(url: str) -> None:
    """Ask until a line comes on stdin."""
    address = urlsplit(url)
    waits: list[float] = []
    gc.disable()
    with socket.create_connection((address.hostname or "", address.port or 0)) as asking:
        asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print("asking", flush=True)
        while not select.select([sys.stdin], [], [], _EVERY_S)[0]:
            began = time.perf_counter()
            asking.sendall(b"PING\r\n")
            asking.recv(64)
            waits.append((time.perf_counter() - began) * 1000)
    waits.sort()
    print(json.dumps({"longest_ms": waits[-1], "p999_ms": waits[int(0.999 * (len(waits) - 1))], "asked": len(waits)}))


if __name__ == "__main__":
    main(sys.argv[1])
