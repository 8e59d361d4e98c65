"""Where is an HTTP server, as a person may be told? Its address can hold a password."""

from __future__ import annotations

from urllib.parse import urlsplit

from sluicegate.errors import UsageError


def place(url: str, example: str) -> str:
    """Give host and port of an address, for messages.

    Raises UsageError with an example where it is no address of HTTP.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not host:
        raise UsageError("That is no address of an HTTP server.", f"It looks like {example}, with https:// for TLS.")
    named = f"[{host}]" if ":" in host else host
    return f"{named}:{port}" if port else named
