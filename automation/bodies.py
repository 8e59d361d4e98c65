"""Read a request's body within a size and a time, so that nobody's slowness or length is this service's trouble."""

from __future__ import annotations

import asyncio

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

# About 27,000 alerts of ordinary size.
BODY_LIMIT = 8 * 1024 * 1024
BODY_WITHIN_S = 5.0


async def read_body(request: Request, within_s: float = BODY_WITHIN_S) -> bytes | JSONResponse:
    """Give the whole body, or the answer that says why there is none."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > BODY_LIMIT:
        return _too_large()
    parts, size = [], 0
    try:
        async with asyncio.timeout(within_s):
            async for part in request.stream():
                size += len(part)
                if size > BODY_LIMIT:
                    return _too_large()
                parts.append(part)
    except TimeoutError:
        return _last_answer(408, f"The body was not there after {within_s:g} s; nothing was kept.")
    except ClientDisconnect:
        return _last_answer(400, "The connection ended before the body did; nothing was kept.")
    return b"".join(parts)


def _too_large() -> JSONResponse:
    return _last_answer(413, f"The body is larger than {BODY_LIMIT} bytes.")


def _last_answer(code: int, message: str) -> JSONResponse:
    # What is left of the body is not read: the connection can't be used again.
    return JSONResponse({"error": message}, status_code=code, headers={"Connection": "close"})
