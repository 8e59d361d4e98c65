"""Read the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header). Pure.

The draft asks for a structured-field string (RFC 9651): `Idempotency-Key: "8e03978e-40d5"`. Many clients leave the
quotes out, so the bare form `Idempotency-Key: 8e03978e-40d5` is taken too and means the same key. Parameters after a
quoted key are allowed and, as none is defined, ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sluicegate.errors import UsageError
from sluicegate.submission import MAX_KEY

HEADER = "Idempotency-Key"

_CHARACTERS = r'(?:[ !#-\[\]-~]|\\["\\])*'
# A token, a number, a boolean, bytes between colons, a date or a string: what a parameter may carry.
_VALUE = rf'(?:"{_CHARACTERS}"|[A-Za-z0-9*?@:+\-][A-Za-z0-9!#$%&\'*+\-.^_`|~:/=]*)'
_PARAMETERS = rf"(?:;[ ]*[a-z*][a-z0-9_\-.*]*(?:={_VALUE})?)*"
_QUOTED = re.compile(rf'"({_CHARACTERS})"{_PARAMETERS}')
# Without quotes no quote, and neither a comma nor a semicolon: two lines that a proxy joined are not one key, and
# where a parameter begins must be beyond doubt.
_BARE = re.compile(r"[!#-+\--:<-~]+")
_ESCAPED = re.compile(r'\\(["\\])')
_KEY = re.compile(r"[!-~]+")

_HINT = f'Send one header such as {HEADER}: "8e03978e-40d5-43dd-bc93-6894a57f9324".'


def parse_key(lines: Sequence[str]) -> str:
    """Give the key that the header's lines carry; raises UsageError where they carry none, several, or a bad one."""
    text = ", ".join(lines).strip(" \t")
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        key = _ESCAPED.sub(r"\1", quoted.group(1))
    elif _BARE.fullmatch(text):
        key = text
    else:
        raise UsageError(f"The {HEADER} {_shown(text)} is neither one quoted string nor one bare word.", _HINT)
    if not _KEY.fullmatch(key) or len(key) > MAX_KEY:
        raise UsageError(
            f"The {HEADER} {_shown(key)} has {len(key)} characters, not 1 to {MAX_KEY} printable ASCII ones without "
            "spaces.",
            _HINT,
        )
    return key


def quoted(key: str) -> str:
    """Give a key as the header's value, as the draft wants it."""
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
