"""A request's head is bounded; what it asks for is not, and an answer goes out as one piece."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from sluicegate.web.serving import quiet_config
from tests.queues import wait_until

WITHIN_S = 10.0
LENGTH_FIRST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n"
KIB = b"x" * 1024


async def echo_length(scope: Scope, receive: Receive, send: Send) -> None:
    length, more = 0, True
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = str(length).encode()
    head = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Give the port of a server that answers with the length of the body."""
    config = quiet_config(echo_length, 1)
    config.port = 0
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, "the server", WITHIN_S)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(WITHIN_S)


@pytest.fixture
def wire(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), WITHIN_S) as connected:
        yield connected


def is_closed(wire: socket.socket) -> bool:
    """Say whether the other side closed, before it took a megabyte more."""
    try:
        for _ in range(1024):
            wire.sendall(KIB)
        return wire.recv(1) == b""
    except (BrokenPipeError, ConnectionResetError):
        return True


@pytest.mark.parametrize("begun", [b"GET /", b"GET / HTTP/1.1\r\nX-Long: ", b"GET / HTTP/1.1\r\nX"])
def test_a_head_without_end_is_cut_off(wire: socket.socket, begun: bytes) -> None:
    wire.sendall(begun)

    assert is_closed(wire)


def test_a_trailer_without_end_is_cut_off(wire: socket.socket) -> None:
    wire.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Long: ")

    assert is_closed(wire)


def test_a_body_may_be_longer_and_its_connection_is_used_again(wire: socket.socket) -> None:
    for _ in range(3):
        wire.sendall(LENGTH_FIRST)
        wire.sendall(b"x" * 300_000)

        # In one piece: whoever has the head has the body, too.
        assert wire.recv(65_536).endswith(b"\r\n\r\n300000")


def test_requests_sent_ahead_are_all_answered(wire: socket.socket) -> None:
    wire.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 200 + b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")

    answers = b""
    while said := wire.recv(65_536):
        answers += said
    assert answers.count(b"200 OK") == 201
    assert answers.endswith(b"0")
