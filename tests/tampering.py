"""A relay in front of a real server that passes its answers on changed, cut short, late or byte by byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import TracebackType

from tests.lossy import LossyRelay

# Passes an answer on to a client in its own way; gives whether the connection goes on.
Tamper = Callable[[bytes, socket.socket], bool]


class TamperingRelay(LossyRelay):
    """Pass connections on to a server; from `tamper_with` on its answers go through a function."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._tamper: Tamper | None = None
        self.over = threading.Event()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        super().__exit__(kind, error, trace)

    def tamper_with(self, tamper: Tamper | None) -> None:
        """Change every answer from now on; None passes them on as they are."""
        self._tamper = tamper

    def late(self, seconds: float) -> Tamper:
        """Hold every answer back for so long."""

        def pass_on(data: bytes, client: socket.socket) -> bool:
            self.over.wait(seconds)
            client.sendall(data)
            return True

        return pass_on

    def dripping(self, each_s: float) -> Tamper:
        """Give every answer a byte at a time, so that something always comes and never all of it."""

        def pass_on(data: bytes, client: socket.socket) -> bool:
            for at in range(len(data)):
                if self.over.wait(each_s):
                    return False
                client.sendall(data[at : at + 1])
            return True

        return pass_on

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(65_536):
                if answers and self._tamper is not None:
                    if not self._tamper(data, sink):
                        break
                else:
                    sink.sendall(data)
        except OSError:
            pass  # the other direction, or the end of the test, has closed it
        finally:
            self._close(source, sink)


def cut_short(data: bytes, client: socket.socket) -> bool:
    """Give half of the answer, then nothing."""
    client.sendall(data[: len(data) // 2])
    return False


def instead(answer: bytes) -> Tamper:
    """Give another answer in place of the server's."""

    def pass_on(_: bytes, client: socket.socket) -> bool:
        client.sendall(answer)
        return True

    return pass_on


def bulk(text: bytes) -> bytes:
    """Give a text as the server sends one."""
    return b"$%d\r\n%s\r\n" % (len(text), text)
