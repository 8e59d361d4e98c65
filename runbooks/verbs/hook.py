"""Describe a call to a system outside: what is sent, how a lost outcome is handled, and what stays secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from runbooks.context import Context
from runbooks.values import Address, Key, Method
from runbooks.verbs.step import OnUnknown
from runbooks.where import Where
from sluicegate.errors import SettingsError
from sluicegate.http_address import masked


@dataclass(frozen=True, slots=True)
class Hook:
    """Hold one HTTP call; without a URL under the settings in force it is not made."""

    method: Method
    url: Address
    idempotency_key: Key
    on_unknown: OnUnknown | None

    @classmethod
    def read(cls, fields: Mapping[str, Any], where: Where) -> Hook:
        unknown = fields.get("on_unknown")
        return cls(
            method=Method.read(fields.get("method", "POST"), where.at("method")),
            url=Address.read(fields["url"], where.at("url")),
            idempotency_key=Key.read(fields["idempotency_key"], where.at("idempotency_key")),
            on_unknown=None if unknown is None else OnUnknown(unknown),
        )

    def target(self, context: Context) -> str | None:
        """Give the URL to call, or None where the settings name none; raises SettingsError for another scheme."""
        return http_url(self.url.resolve(context), "hook")

    def line(self, context: Context, on_unknown: OnUnknown | None = None) -> str | None:
        """Say what is sent, or None where nothing is; `on_unknown` is the rule in force where it differs."""
        url = self.target(context)
        if url is None:
            return None
        unknown = {
            OnUnknown.PROBE: "a lost outcome is probed",
            OnUnknown.RETRY: "a lost outcome is called again under the same key",
            OnUnknown.HOLD: "a lost outcome waits for a named person",
            None: "a lost outcome has no rule",
        }[on_unknown or self.on_unknown]
        key = self.idempotency_key.resolve(context)
        return f"{self.method.resolve(context)} {masked(url)} with Idempotency-Key {key}; {unknown}"


def http_url(url: str, of: str) -> str | None:
    """Give the address, or None for none; raises SettingsError for another scheme than http and https."""
    if not url:
        return None
    if not _is_http(url):
        raise SettingsError(f"The {of}'s URL {masked(url)!r} is not an http or https address.")
    return url


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
