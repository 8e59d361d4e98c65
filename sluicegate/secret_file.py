"""Read a secret from a file, as Docker, Kubernetes and systemd hand secrets out; no message repeats what is in it."""

from __future__ import annotations

from pathlib import Path

from sluicegate.errors import SettingsError

_MOST_BYTES = 64 * 1024


def read_secret(path: Path, setting: str) -> str:
    """Give a file's text without the line break that ends it.

    Raises SettingsError naming the setting and the file where there is no text, or more than one line of it.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode().removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise SettingsError(f"{setting} names {path}, which cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SettingsError(f"{setting} names {path}, which holds no text.") from error
    if not text or "\n" in text:
        raise SettingsError(
            f"{setting} names {path}, which holds {'more than one line' if text else 'nothing'}.",
            "The file holds the secret and nothing else.",
        )
    return text
