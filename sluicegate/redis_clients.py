"""Make redis-py's clients from settings: both timeouts set, no retries, secrets read when a connection is made.

Making one connects to nothing. A password file or a certificate that is replaced counts from the next connection on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis import connection as redis_connection
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from sluicegate import redis_address
from sluicegate.errors import SettingsError, UsageError
from sluicegate.redis_settings import PLAIN, RedisSettings, host_and_port
from sluicegate.secret_file import read_secret

# What Redis.from_url makes of an address; untyped.
_parse_url: Any = redis_connection.parse_url
PASSWORD_FILE = "redis_password_file"  # noqa: S105  # the name of a setting
_SENTINEL_PASSWORD_FILE = "redis.sentinel_password_file"  # noqa: S105  # the name of a setting


@dataclass(frozen=True, slots=True)
class Access:
    """Say how a server is reached: its address, what the settings add to it, and how long one wait may be."""

    url: str
    settings: RedisSettings = PLAIN
    password_file: Path | None = None
    connect_timeout_s: float = 1.0
    timeout_s: float = 1.0


class SecretFile(redis.CredentialProvider):
    """Give name and password anew for every connection, so that a changed password needs no restart."""

    def __init__(self, user: str | None, path: Path, setting: str) -> None:
        self._user = user
        self._path = path
        self._setting = setting
        read_secret(path, setting)  # says at once what is wrong with the file

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Read the file; raises redis-py's ConnectionError: on any other its connection would stay, without a user."""
        try:
            password = read_secret(self._path, self._setting)
        except SettingsError as error:
            raise redis.exceptions.ConnectionError(error.message) from error
        return (password,) if self._user is None else (self._user, password)


class Sentinels(Sentinel):
    """Ask for the primary as Sentinel's own protocol has it.

    redis-py asks for the Sentinels' view of all primaries, in which the old one stands until every replica follows the
    new one: if it comes back meanwhile it would be taken for the primary, and what it accepts is lost.
    """

    def discover_master(self, service_name: str) -> tuple[str, int]:
        """Give the primary's host and port from the first Sentinel that answers, which stays the first.

        Raises redis-py's ConnectionError where none knows one that is up, and a ResponseError where each refuses to
        answer, as one without these commands for this user does: that mends nothing by itself.
        """
        unheard: list[redis.exceptions.RedisError] = []
        asked = tuple(self.sentinels)
        for sentinel in asked:
            try:
                place = self._primary_by(sentinel, service_name)
            except redis.exceptions.RedisError as error:
                unheard.append(error)
                continue
            if place is not None:
                # A list of its own, and all of them: another thread may have put another in front meanwhile.
                self.sentinels = [sentinel, *(one for one in asked if one is not sentinel)]
                return place
        refused = [error for error in unheard if isinstance(error, redis.exceptions.ResponseError)]
        if refused and len(refused) == len(asked):
            raise refused[0]
        raise MasterNotFoundError("; ".join((f"No primary found for {service_name!r}", *map(str, unheard))))

    def _primary_by(self, sentinel: redis.Redis, service_name: str) -> tuple[str, int] | None:
        untyped: Any = sentinel
        named = untyped.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service_name)
        if named is None:
            return None
        place = (str(named[0]), int(named[1]))
        state = untyped.sentinel_master(service_name)
        # Another than in its view is a replica that was just promoted.
        is_down = state["is_sdown"] or state["is_odown"]
        return None if is_down and place == (state["ip"], state["port"]) else place


def check(access: Access) -> None:
    """Raise UsageError on an address or a file that can't be used."""
    _client({**_options(access), **_waits(access)})


def single(access: Access) -> redis.Redis:
    """Give a client of the server at the address. Raises UsageError on an address or a file that can't be used."""
    return _client({**_options(access), **_waits(access)})


def node(access: Access, host: str, port: int) -> redis.Redis:
    """Give a client of one node of a cluster. Raises as `single`."""
    return _client({**_options(access), **_waits(access), "host": host, "port": port})


def primary_by_sentinels(access: Access) -> tuple[redis.Redis, Sequence[redis.Redis]]:
    """Give a client that asks the Sentinels for the primary whenever it connects, and the Sentinels' own clients.

    All Sentinels together get the time of one connection: one that hangs must not use it up. Raises as `single`.
    """
    check(access)
    given, options = access.settings, _options(access)
    shared = {name: value for name, value in options.items() if name.startswith("ssl_")}
    tls = options.pop("connection_class", None) is redis.SSLConnection
    for name in ("host", "port"):
        options.pop(name, None)
    share_s = access.connect_timeout_s / len(given.sentinels)
    at_sentinels = {
        **shared,
        **_waits(access),
        "socket_connect_timeout": share_s,
        "socket_timeout": share_s,
        "ssl": tls,
    }
    if given.sentinel_password_file is not None:
        at_sentinels["credential_provider"] = SecretFile(
            given.sentinel_username, given.sentinel_password_file, _SENTINEL_PASSWORD_FILE
        )
    untyped: Any = Sentinels
    asked = untyped([host_and_port(one) for one in given.sentinels], sentinel_kwargs=at_sentinels)
    client: redis.Redis = asked.master_for(given.service, ssl=tls, **options, **_waits(access))
    return client, asked.sentinels


def _client(options: dict[str, Any]) -> redis.Redis:
    pool = redis.ConnectionPool(**options)
    try:
        # Finds an option that there is not; connects to nothing.
        pool.connection_class(**pool.connection_kwargs)
    except (ValueError, TypeError) as error:
        raise redis_address.not_taken() from error
    return redis.Redis.from_pool(pool)


def _waits(access: Access) -> dict[str, Any]:
    return {
        "decode_responses": True,
        "socket_connect_timeout": access.connect_timeout_s,
        "socket_timeout": access.timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "health_check_interval": 0,
        # CLIENT SETINFO is one more command than a read-only user needs.
        "driver_info": None,
    }


def _options(access: Access) -> dict[str, Any]:
    """Give what the address and the settings say, as redis-py's connections take it."""
    redis_address.check(access.url)
    try:
        options: dict[str, Any] = _parse_url(access.url)
    except ValueError as error:
        raise redis_address.not_taken() from error
    _check_against_places(access.settings, options)
    _take_certificates(access.settings, options)
    if access.password_file is not None:
        if options.pop("password", None) is not None:
            raise UsageError(
                f"Both the Redis address and {PASSWORD_FILE} give a password.", "Take it out of the address."
            )
        options["credential_provider"] = SecretFile(options.pop("username", None), access.password_file, PASSWORD_FILE)
    return options


def _check_against_places(settings: RedisSettings, options: dict[str, Any]) -> None:
    if (settings.sentinels or settings.cluster_nodes) and "path" in options:
        raise SettingsError(
            "The Redis address is a socket of this machine, which neither Sentinels nor a cluster are behind.",
            redis_address.HINT,
        )
    if settings.cluster_nodes and options.get("db"):
        raise SettingsError(
            f"The Redis address names the database {options['db']}, and a cluster has only 0.", redis_address.HINT
        )


def _take_certificates(settings: RedisSettings, options: dict[str, Any]) -> None:
    files = {"ca_file": settings.ca_file, "cert_file": settings.cert_file, "key_file": settings.key_file}
    given = {name: path for name, path in files.items() if path is not None}
    if given and options.get("connection_class") is not redis.SSLConnection:
        raise SettingsError(
            f"redis.{next(iter(given))} is set, but the Redis address does not ask for TLS.",
            "An address of a server with TLS begins with rediss://.",
        )
    for name, path in given.items():
        if not path.is_file():
            raise SettingsError(f"redis.{name} names {path}, which is no file.")
        options[{"ca_file": "ssl_ca_certs", "cert_file": "ssl_certfile", "key_file": "ssl_keyfile"}[name]] = str(path)
