"""Who may call the automation service: what the settings and the files that they name ask for, as it is now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

from automation.callers import Caller
from sluicegate.service_settings import AutomationSettings
from sluicegate.web.config import OPEN, ClientAuth, WebConfig
from sluicegate.web.credentials import basic, bearer, is_one_of
from sluicegate.web.file import WebFile
from sluicegate.web.kept_file import KeptFile
from sluicegate.web.passwords import Passwords, Verdict
from sluicegate.web.roles import Role
from sluicegate.web.tokens import read_tokens


class Answer(StrEnum):
    """Name what becomes of a caller's credentials."""

    RIGHT = "right"
    WRONG = "wrong"
    MISSING = "missing"
    BUSY = "busy"  # too many passwords are being checked: the caller comes back


class Access:
    """Judge credentials: a bearer token, a name with its password, each of which may be any of those in force.

    A browser knows names and passwords only: there a token does as the password of any name.

    Raises SettingsError where a file that the settings name can't be used. `close` is safe twice.
    """

    def __init__(self, settings: AutomationSettings) -> None:
        self.web = WebFile(settings.web_config_file) if settings.web_config_file else None
        self._token = settings.token
        self._tokens = KeptFile(settings.token_file, read_tokens) if settings.token_file else None
        self._secrets = KeptFile(settings.grafana_secret_file, _secrets) if settings.grafana_secret_file else None
        self._passwords = Passwords()
        self._roles = settings.roles
        self._token_role = settings.token_role

    @property
    def config(self) -> WebConfig:
        return self.web.config if self.web is not None else OPEN

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """Give the secrets by which Grafana signs."""
        return self._secrets.value if self._secrets is not None else ()

    @property
    def guarded(self) -> bool:
        """Say whether anything at all is asked of callers beside what TLS asks."""
        return bool(self._known_tokens() or self.config.users or self.secrets)

    @property
    def hears_anybody(self) -> bool:
        """Say whether whoever reaches the port may do everything: not even a client certificate is asked for."""
        tls = self.config.tls
        return not self.guarded and (tls is None or tls.client_auth is not ClientAuth.REQUIRED)

    @property
    def asks_names(self) -> bool:
        """Say whether a name and a password will do: of the users, or with the token as the password."""
        return bool(self._known_tokens() or self.config.users)

    @property
    def renewals(self) -> Sequence[Callable[[], object]]:
        """Give what follows the files beside the web-config file."""
        return [kept.renew for kept in (self._tokens, self._secrets) if kept is not None]

    async def judge(self, header: str | None, address: str) -> Answer:
        """Say what becomes of a caller with this Authorization header (latin-1, as HTTP has it)."""
        token = bearer(header)
        if token is not None:
            return Answer.RIGHT if is_one_of(token.encode("latin-1"), self._known_tokens()) else Answer.WRONG
        users, given = self.config.users, basic(header)
        if given is not None and self._is_token(given[1]):
            return Answer.RIGHT
        if given is None or not users:
            return Answer.MISSING if not header else Answer.WRONG
        verdict = await self._passwords.check(users, *given, address)
        return {Verdict.RIGHT: Answer.RIGHT, Verdict.WRONG: Answer.WRONG, Verdict.BUSY: Answer.BUSY}[verdict]

    def caller(self, header: str | None) -> Caller:
        """Say who it is whose credentials were right; where none are asked for, anybody may do anything."""
        if not self.guarded:
            return Caller()
        given = basic(header)
        if given is None:
            return Caller(role=self._token_role)
        name, password = given
        if self._is_token(password):
            return Caller(called=name, role=self._token_role)
        return Caller(name, name, self._roles.get(name, Role.NOTIFY) if self._roles else Role.APPROVE)

    def _is_token(self, password: str) -> bool:
        return is_one_of(password.encode(), self._known_tokens())

    def close(self) -> None:
        self._passwords.close()

    def _known_tokens(self) -> tuple[bytes, ...]:
        if self._tokens is not None:
            return tuple(token.encode() for token in self._tokens.value)
        return (self._token.encode(),) if self._token else ()


def _secrets(path: Path) -> tuple[bytes, ...]:
    return tuple(secret.encode() for secret in read_tokens(path))
