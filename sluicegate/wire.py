"""Use the socket of a connection of redis-py as it is: commands are packed, and answers parsed, by hiredis in C.

redis-py's own way to send a command and to read its answer costs half as much again of the client's CPU.
"""

from __future__ import annotations

import select
import socket
from typing import Any, cast

import hiredis
import redis

# redis-py leaves the methods of its connections untyped.
Connection = Any
# What a reader gives where no whole answer has come yet.
NOTHING_YET = object()
# Give a command as it goes over the wire; its type is given for one word only.
pack: Any = hiredis.pack_command

_AT_ONCE = 65_536


class Wire:
    """Use the socket of one of redis-py's connections as it is, from when it was made until it is closed."""

    __slots__ = ("_gets", "_reader", "_recv", "has_come", "send", "socket")

    def __init__(self, connection: Connection) -> None:
        encoder = connection.encoder
        decoding = {"encoding": encoder.encoding, "errors": encoder.encoding_errors} if encoder.decode_responses else {}
        self.socket: socket.socket = connection._sock
        self.send = self.socket.sendall
        self._recv = self.socket.recv
        self._reader: Any = hiredis.Reader(
            protocolError=redis.exceptions.InvalidResponse,
            replyError=connection._parser.parse_error,
            notEnoughData=NOTHING_YET,
            **decoding,
        )
        self._gets = self._reader.gets
        look = select.poll()
        look.register(self.socket, select.POLLIN)
        # Within so many ms; redis-py would make this anew for every look.
        self.has_come = look.poll

    def read(self) -> object:
        """Give the next answer; raises the error that it is, or redis-py's and the socket's where none comes."""
        while True:
            said = self._gets()
            while said is NOTHING_YET:
                data = self._recv(_AT_ONCE)
                if not data:
                    raise redis.exceptions.ConnectionError("the server closed the connection")
                self._reader.feed(data)
                said = self._gets()
            kind = said.__class__
            if kind is list or kind is str:
                return cast("object", said)
            if isinstance(said, Exception):
                raise said
            if not isinstance(said, hiredis.PushNotification):  # such as one about a failover to come: no answer
                return cast("object", said)
