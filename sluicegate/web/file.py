"""Keep what a web-config file says, as it is now: whoever replaces it, a certificate or a key restarts nothing."""

from __future__ import annotations

import ssl
from enum import StrEnum
from pathlib import Path

import structlog

from sluicegate.errors import SettingsError
from sluicegate.web.config import ClientAuth, TlsVersion, WebConfig, context_of, read
from sluicegate.web.kept_file import Stamp, stamp_of

_log = structlog.get_logger(__name__)


class WebFile:
    """Hold one web configuration with its TLS context; a change that is not whole leaves the last good one in force.

    Raises SettingsError where the file, or one that it names, can't be used at the start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[Path, Stamp] = {}
        self.config, self.context = self._load()

    def renew(self) -> bool:
        """Read again if a file has changed since the last look; gives whether another configuration is in force now.

        Whoever writes a certificate and its key one after the other is met in between: then the old pair stays, and
        the next look finds the new one.
        """
        if all(stamp_of(path) == stamp for path, stamp in self._seen.items()):
            return False
        try:
            config, context = self._load()
            _refuse_to_ask_less(self.config, config)
        except SettingsError as error:
            _log.warning("web_config_refused", file=str(self._path), error=str(error), in_force="the one from before")
            return False
        self.config, self.context = config, context
        _log.info("web_config_renewed", file=str(self._path), users=len(config.users), tls=config.tls is not None)
        return True

    def _load(self) -> tuple[WebConfig, ssl.SSLContext | None]:
        """Read all files; each is looked at before it is read, so a change in between is found by the next look."""
        self._seen = {path: stamp_of(path) for path in self._seen or (self._path,)}
        config = read(self._path)
        if config.tls is None:
            return config, None
        self._seen = {self._path: self._seen[self._path], **{path: stamp_of(path) for path in config.tls.files}}
        return config, context_of(self._path, config.tls)


def _refuse_to_ask_less(before: WebConfig, after: WebConfig) -> None:
    """Raise SettingsError where a change would let in whoever was kept out.

    A file that is half written can be valid: what is still to come is what it asks for.
    """
    if (after.tls is None) != (before.tls is None):
        raise SettingsError("TLS is switched on or off by a restart only.")
    if before.users and not after.users:
        raise SettingsError("Passwords are given up by a restart only.")
    if before.tls is None or after.tls is None:
        return
    if _place(after.tls.client_auth) < _place(before.tls.client_auth):
        raise SettingsError("Client certificates are asked for less strictly by a restart only.")
    if _place(after.tls.min_version) < _place(before.tls.min_version):
        raise SettingsError("An older protocol is taken by a restart only.")


def _place(one: ClientAuth | TlsVersion) -> int:
    """Give the place among its kind; the enums go from the least strict to the strictest."""
    return list[StrEnum](type(one)).index(one)
