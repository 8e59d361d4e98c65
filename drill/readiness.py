"""Ask a server that was just started whether it is ready."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable

from drill.ports import LOOPBACK

_WITHIN_S = 1.0


def answers_http(path: str) -> Callable[[int], bool]:
    """Return a check that GET `path` on a port of loopback is answered with a status below 300.

    It is asked many times a second, so it does without an HTTP client's start-up; and a proxy that the environment
    names for the outside world is not asked for loopback.
    """

    def ready(port: int) -> bool:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_WITHIN_S)
        try:
            connection.request("GET", path)
            return connection.getresponse().status < 300
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return ready


def answers_ping(port: int) -> bool:
    """Tell whether a Redis or Valkey is up and has loaded its data (while loading it answers with an error)."""
    try:
        with socket.create_connection((LOOPBACK, port), _WITHIN_S) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
