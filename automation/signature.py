"""Check what Grafana's alerting signs: HMAC-SHA256 over the time, a colon and the body, in hex.

Source: Grafana's documentation of its webhook contact point ("HMAC signature"). The name of the time's header is
the contact point's setting; without a time whoever saw a notification once could post it again.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from sluicegate.web.credentials import is_one_of

SIGNATURE_HEADER = "X-Grafana-Alerting-Signature"
TIMESTAMP_HEADER = "X-Grafana-Alerting-Timestamp"
# How far the signer's clock and this one may be apart, the way included.
TOLERATED_S = 300


def signature_of(secret: bytes, timestamp: str, body: bytes) -> str:
    """Give the signature that belongs to a body of that time (s since 1970)."""
    return hmac.new(secret, timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()


def is_signed(secrets: Iterable[bytes], body: bytes, signature: str, timestamp: str, now_s: float) -> bool:
    """Say whether one of the secrets has signed this body lately."""
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) < 17):
        return False
    if abs(now_s - int(timestamp)) > TOLERATED_S:
        return False
    given = signature.strip().lower().encode("latin-1", "replace")
    return is_one_of(given, [signature_of(secret, timestamp, body).encode() for secret in secrets])
