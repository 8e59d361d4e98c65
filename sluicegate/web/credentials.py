"""Take the credentials out of an Authorization header, whatever else it may hold."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable

_LONGEST_CREDENTIALS = 1024


def basic(header: str | None) -> tuple[str, str] | None:
    """Give name and password of an Authorization header (RFC 7617), None where it holds none."""
    text = _of_scheme(header, "basic")
    if text is None:
        return None
    try:
        pair = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    name, colon, password = pair.partition(":")
    return (name, password) if colon else None


def bearer(header: str | None) -> str | None:
    """Give the token of an Authorization header (RFC 6750), None where it holds none."""
    return _of_scheme(header, "bearer")


def is_one_of(given: bytes, known: Iterable[bytes]) -> bool:
    """Say whether a secret is one of the known ones, in a time that tells neither which nor how much of it is right."""
    found = False
    for secret in known:
        found |= hmac.compare_digest(given, secret)
    return found


def _of_scheme(header: str | None, wanted: str) -> str | None:
    scheme, _, text = (header or "").strip().partition(" ")
    if scheme.lower() != wanted or len(text) > _LONGEST_CREDENTIALS:
        return None
    return text.strip() or None
