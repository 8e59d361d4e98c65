"""Read tokens and secrets from files: one a line, two while one takes the other's place; no message repeats them."""

from __future__ import annotations

import re
from pathlib import Path

from sluicegate.errors import SettingsError

# What RFC 6750 allows in a bearer token; shorter ones can be guessed.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,512}=*")
_MAKE_ONE = "Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
_MOST_BYTES = 4096
_IN_WORDS = {1: "one bearer token", 2: "one bearer token or two, a line each,"}


def read_tokens(path: Path, most: int = 2) -> tuple[str, ...]:
    """Read one to `most` bearer tokens, a line each; raises SettingsError where the file holds anything else."""
    try:
        with path.open("rb") as file:
            lines = file.read(_MOST_BYTES).decode("ascii").split()
    except OSError as error:
        raise SettingsError(f"The token file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        lines = []
    if not 1 <= len(lines) <= most or not all(_TOKEN.fullmatch(line) for line in lines):
        raise SettingsError(
            f"The token file {path} does not hold {_IN_WORDS[most]} of 16 to 512 characters.", _MAKE_ONE
        )
    return tuple(lines)
