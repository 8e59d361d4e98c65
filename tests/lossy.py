"""A relay in front of a real server that can lose an answer: the command runs, and its caller never hears of it."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from sluicegate.store import Store


def connected(relay: LossyRelay) -> Store:
    """Give a store whose connection stands: the next answer is that of the next command, not of a greeting."""
    store = Store.connect(relay.url)
    store.server_time_ms()
    return store


class LossyRelay:
    """Pass connections on to a server; after `lose_next` the connection with the next answer breaks instead.

    `refuse` breaks every connection and takes no more until `accept`.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._to_lose = 0
        self._refusing = False
        self._open: set[socket.socket] = set()
        self._closed = False
        self.lost = 0
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        # Closing alone does not wake a thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._break_all()

    def lose_next(self, answers: int = 1) -> None:
        """Lose the next `answers` answers, whatever they are."""
        with self._lock:
            self._to_lose = answers

    def refuse(self) -> None:
        self._refusing = True
        self._break_all()

    def accept(self) -> None:
        self._refusing = False

    def _serve(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                continue
            server = socket.create_connection(self._target)
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        try:
            while (data := source.recv(65_536)) and not (answers and self._loses()):
                sink.sendall(data)
        except OSError:
            pass  # the other direction, or a refusal, has closed it
        finally:
            self._close(source, sink)

    def _loses(self) -> bool:
        with self._lock:
            if self._to_lose == 0:
                return False
            self._to_lose -= 1
            self.lost += 1
            return True

    def _break_all(self) -> None:
        with self._lock:
            ends = tuple(self._open)
        self._close(*ends)

    def _close(self, *ends: socket.socket) -> None:
        for end in ends:
            with self._lock:
                self._open.discard(end)
            with contextlib.suppress(OSError):  # it was closed already
                end.shutdown(socket.SHUT_RDWR)
            end.close()
