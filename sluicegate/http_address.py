"""Where is an HTTP server, as a person may be told? Its address can hold a password."""

from __future__ import annotations

from urllib.parse import urlsplit

from sluicegate.errors import UsageError

_MASK = "***"
# Names of paths are short words; tokens are long.
_LONGEST_PLAIN = 20


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


def masked(url: str) -> str:
    """Write a URL without what may be secret in it: userinfo, values of the query, long or odd parts of the path."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return _MASK
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or ""
    user = f"{_MASK}@" if "@" in parts.netloc else ""
    path = "/".join(_plain_or_masked(segment) for segment in parts.path.split("/"))
    query = "&".join(_masked_value(pair) for pair in parts.query.split("&")) if parts.query else ""
    return f"{parts.scheme}://{user}{host}{port}{path}" + (f"?{query}" if query else "")


def _plain_or_masked(part: str) -> str:
    return part if len(part) <= _LONGEST_PLAIN and not set(part) & set(";=:@") else _MASK


def _masked_value(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{_plain_or_masked(name)}={_MASK}" if equals else _MASK
