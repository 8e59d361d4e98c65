"""HTTP/1.1 messages over one socket, whole ones at a time."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass

import h11

_CHUNK = 65_536
_BODY_MAX = 16 * 1024 * 1024
# What belongs to one connection, not to the message (RFC 9110, 7.6.1); the length is counted anew on each side.
_PER_CONNECTION = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
        *(b"expect", b"content-length"),
    }
)
_WITHOUT_BODY = frozenset({204, 304})
_LINGER_ZERO = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Message:
    """Hold a whole HTTP message: its opening (request or response) and its body."""

    head: h11.Request | h11.Response
    body: bytes


class Wire:
    """Carry messages over one socket, as the client or as the server."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, role: type[h11.CLIENT] | type[h11.SERVER]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(role)

    async def receive(self) -> Message | None:
        """Return the next whole message, None when the other side closed before one began.

        Raises h11.RemoteProtocolError for what is no HTTP or ends in the middle.
        """
        head: h11.Request | h11.Response | None = None
        body = bytearray()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Request | h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > _BODY_MAX:
                    raise h11.RemoteProtocolError("The body is over 16 MiB.", error_status_hint=413)
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return Message(head, bytes(body))
            elif isinstance(event, h11.ConnectionClosed):
                return None

    async def send(self, message: Message) -> None:
        """Send a whole message."""
        parts = [self._http.send(message.head)]
        if message.body:
            parts.append(self._http.send(h11.Data(data=message.body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part for part in parts if part))
        await self._writer.drain()

    def reuse(self) -> bool:
        """Make ready for the next message; False when this connection can carry none."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    @property
    def can_respond(self) -> bool:
        """Tell whether an answer may still be sent for the request that is being received."""
        return self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}

    @property
    def ended(self) -> bool:
        """Tell whether the other side has closed."""
        return self._reader.at_eof()

    async def wait_for_end(self) -> None:
        """Return when the other side has closed, what it still sends thrown away."""
        while await self._reader.read(_CHUNK):
            pass

    def close(self) -> None:
        """Close once what was sent is out."""
        self._writer.close()

    def reset(self) -> None:
        """Close with a reset (RST), what was not sent yet thrown away."""
        sock = self._writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self._writer.transport.abort()

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                go_on = self._http.send(h11.InformationalResponse(status_code=100, headers=[]))
                self._writer.write(go_on or b"")
            self._http.receive_data(await self._reader.read(_CHUNK))
        return event


def forwarded_request(message: Message) -> Message:
    """Return the request as it goes to the next hop."""
    head = message.head
    if not isinstance(head, h11.Request):
        raise TypeError("a response is not forwarded as a request")
    headers = _end_to_end(head)
    if message.body or _has_length(head):
        headers.append((b"content-length", str(len(message.body)).encode()))
    return Message(h11.Request(method=head.method, target=head.target, headers=headers), message.body)


def forwarded_response(message: Message, method: bytes) -> Message:
    """Return the response as it goes back to who asked with this method."""
    head = message.head
    if not isinstance(head, h11.Response):
        raise TypeError("a request is not forwarded as a response")
    headers = _end_to_end(head)
    if method == b"HEAD":
        headers += [(name, value) for name, value in head.headers if name == b"content-length"]
    elif head.status_code not in _WITHOUT_BODY:
        headers.append((b"content-length", str(len(message.body)).encode()))
    return Message(h11.Response(status_code=head.status_code, headers=headers, reason=head.reason), message.body)


def _end_to_end(head: h11.Request | h11.Response) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in head.headers if name not in _PER_CONNECTION]


def _has_length(head: h11.Request | h11.Response) -> bool:
    return any(name in {b"content-length", b"transfer-encoding"} for name, _ in head.headers)
