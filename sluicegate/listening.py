"""Bind a listening socket, or say in one sentence why that address can't be had."""

from __future__ import annotations

import ipaddress
import socket

from sluicegate.errors import UsageError

_BACKLOG = 128


def listen(host: str, port: int, who: str) -> socket.socket:
    """Bind and listen on an address for `who` ("the exporter"); port 0 takes a free one.

    Raises UsageError naming the address and what the system said.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise _refused(who, host, port, error) from error
    listening = socket.socket(family, kind, protocol)
    try:
        # A port whose last owner has just gone is free.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _refused(who, host, port, error) from error
    listening.set_inheritable(False)
    return listening


def is_loopback(host: str) -> bool:
    """Say whether an address is surely reached from this machine alone; of a name only `localhost` is."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refused(who: str, host: str, port: int, error: OSError) -> UsageError:
    text = error.strerror or str(error)
    return UsageError(
        f"{who[:1].upper()}{who[1:]} cannot listen on {host}:{port}: {text[:1].lower()}{text[1:]}.",
        "Choose another with --port, or --port 0 for any free one.",
    )
