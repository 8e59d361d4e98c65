"""Which addresses of a server does a store take, and how are they shown to people?

redis-py lets an address override what its caller asked for (time-outs, retries, text answers), takes a database that
is no number for number 0, and finds an option that it does not know only when it connects.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from sluicegate.errors import UsageError
from sluicegate.settings import Settings

# What a command says where nothing answers.
ELSEWHERE = "Start it, or name another with --settings FILE, --redis-url URL or the environment's REDIS_URL."
LOGIN = (
    "Name the user in redis_url (redis://USER@HOST:PORT/DB), and the file that holds the password in "
    "redis_password_file or the environment's REDIS_PASSWORD_FILE."
)
HINT = "Use redis://HOST:PORT/DB or rediss://…."
# What a store does not set itself: the rest is its own business.
_OPTIONS = re.compile(r"db|username|password|client_name|ssl_[a-z_]+")


def check(address: str) -> None:
    """Raise UsageError unless a store takes this address; it may hold a password, so it is not repeated."""
    try:
        parts = urlsplit(address)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else ())
    except ValueError as error:
        raise not_taken() from error
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise not_taken()
    for name in options:
        if not _OPTIONS.fullmatch(name):
            raise UsageError(f"The Redis address sets {name!r}, which is not for an address to say.", HINT)
    database = options.get("db", "" if parts.scheme == "unix" else parts.path.removeprefix("/"))
    if database and not re.fullmatch(r"[0-9]{1,5}", database):
        raise UsageError(f"The Redis address names the database {database!r}, which is not a number.", HINT)


def not_taken() -> UsageError:
    """Make the error for an address that is none."""
    return UsageError("This is not a Redis address.", HINT)


def place(settings: Settings) -> str:
    """Say where these settings look for the queue's server, without a password."""
    if settings.redis.cluster_nodes:
        return f"the cluster of {', '.join(settings.redis.cluster_nodes)}"
    if settings.redis.sentinels:
        return f"{settings.redis.service}, as the Sentinels {', '.join(settings.redis.sentinels)} have it,"
    return shown(settings.redis_url)


def shown(address: str) -> str:
    """Give an address without its password, wherever it stands."""
    parts = urlsplit(address)
    if parts.password is not None:
        parts = parts._replace(netloc=f"***@{parts.netloc.rpartition('@')[2]}")
    return urlunsplit(parts._replace(query="***" if "password" in parts.query else parts.query))
