"""Parse HTTP in C (llhttp), bound what it leaves without a bound, and send an answer as one piece."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# As much as h11 takes.
_MOST_HEAD_BYTES = 65_536


class BoundedHttp(HttpToolsProtocol):
    """Speak HTTP as uvicorn does with httptools; a connection whose head, or trailer, grows without end is closed."""

    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(_Gathering(transport, self.loop))

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > _MOST_HEAD_BYTES:
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)


class _Gathering(asyncio.Transport):
    """Send what is written in one go of the loop at once: uvicorn writes head and body one after the other."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._written:
            self._loop.call_soon(self._send)
        self._written.append(bytes(data))

    def _send(self) -> None:
        if self._written:
            self._transport.write(b"".join(self._written))
            self._written.clear()

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._transport.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()
