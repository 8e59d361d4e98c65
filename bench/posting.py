"""Post one body again and again over kept connections: `python -m bench.posting PORT PATH CONNECTIONS SECONDS MOST`.

The body comes on stdin; `%%` in it becomes the number of the post, 16 hex digits. It ends after so many seconds or
posts, whichever is first, and prints JSON: for each post when it was sent (s since 1970), what it took (ms) and the
answer's code. It is a few lines over a stream: a whole HTTP client would cost more than what is measured.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time

_NUMBER = b"%%"


async def connection(
    port: int, path: str, body: bytes, numbers: itertools.count[int], until: float, most: int
) -> list[tuple[float, float, int]]:
    """Post over one connection until the time or the number is reached."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seen = []
    while (number := next(numbers)) < most and time.monotonic() < until:
        sent = body.replace(_NUMBER, b"%016x" % number)
        head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        at, began = time.time(), time.perf_counter()
        writer.write(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        seen.append((at, (time.perf_counter() - began) * 1000, int(answer[9:12])))
    writer.close()
    return seen


async def post(port: int, path: str, connections: int, seconds: float, most: int) -> list[tuple[float, float, int]]:
    body, numbers, until = sys.stdin.buffer.read(), itertools.count(), time.monotonic() + seconds
    every = [connection(port, path, body, numbers, until, most) for _ in range(connections)]
    return [one for seen in await asyncio.gather(*every) for one in seen]


if __name__ == "__main__":
    port, path, connections, seconds, most = sys.argv[1:]
    print(json.dumps(asyncio.run(post(int(port), path, int(connections), float(seconds), int(most)))))
