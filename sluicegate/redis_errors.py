"""Translate errors at the border: the socket's and the parser's into redis-py's, and redis-py's into the store's."""

from __future__ import annotations

import redis

from sluicegate.errors import NoLogin, NotText, StoreFull, StoreRejected, StoreUnavailable


def lost(error: OSError) -> redis.exceptions.RedisError:
    """Translate an error of the socket: no answer came, in time or at all."""
    if isinstance(error, TimeoutError):
        return redis.exceptions.TimeoutError("no answer in time")
    return redis.exceptions.ConnectionError(str(error))


class _NoText(redis.exceptions.InvalidResponse):
    """Carry that an answer holds what is no UTF-8."""


def no_text(error: UnicodeDecodeError) -> redis.exceptions.RedisError:
    """Translate what the parser says of an answer that is no text.

    Somebody's hand wrote it; whoever reads it must not end by that.
    """
    return _NoText(f"the answer holds what is no UTF-8: {error}")


def forbids_functions(error: redis.exceptions.ResponseError) -> bool:
    """Say whether the server has no FCALL for this user; a key that is forbidden inside a function is not meant."""
    text = str(error).lower()
    return "fcall" in text and (isinstance(error, redis.exceptions.NoPermissionError) or "unknown command" in text)


# What a server says that is no primary any more, or none that may write: it has too few replicas, or has become one.
_NO_PRIMARY = ("READONLY", "MASTERDOWN", "NOREPLICAS", "UNBLOCKED")
# redis-py has classes of its own for two of them, without that word.
_NO_PRIMARY_ERRORS = (redis.exceptions.ReadOnlyError, redis.exceptions.MasterDownError)


def is_no_primary(error: redis.exceptions.RedisError | str) -> bool:
    """Say whether this server takes no writes, where another may: whoever connects again may find that one."""
    return isinstance(error, _NO_PRIMARY_ERRORS) or str(error).startswith(_NO_PRIMARY)


def refused(text: str) -> StoreUnavailable | StoreRejected:
    """Translate an error that the server answered, in its own words."""
    return StoreUnavailable(text) if is_no_primary(text) else StoreRejected(text)


def translated(error: redis.exceptions.RedisError) -> StoreUnavailable | StoreRejected:
    """Translate redis-py's errors at the border: no answer is unavailable, an error answer is rejected."""
    unavailable = (
        redis.exceptions.ConnectionError,
        redis.exceptions.TimeoutError,
        redis.exceptions.BusyLoadingError,
        redis.exceptions.ClusterDownError,
        redis.exceptions.TryAgainError,
    )
    # redis-py counts a refused password as a broken connection; the server answered, and waiting mends nothing.
    if isinstance(error, redis.exceptions.AuthenticationError):
        # What it says to somebody without a password speaks of the protocol: "HELLO must be called with …".
        wants = "HELLO" in str(error) or "Authentication required" in str(error)
        return NoLogin("it wants a password, and got none" if wants else str(error))
    if isinstance(error, unavailable) or is_no_primary(error):
        return StoreUnavailable(str(error) or type(error).__name__)
    if isinstance(error, _NoText):
        return NotText(str(error))
    if isinstance(error, redis.exceptions.MovedError):
        return StoreRejected(
            f"The queue's slot is at {error.host}:{error.port}, and this server is one node of a cluster: name the "
            "cluster's nodes in redis.cluster_nodes."
        )
    if isinstance(error, redis.exceptions.AskError):
        return StoreUnavailable("The queue's slot is being moved to another node of the cluster.")
    # Inside a function the server's word for it is only part of the text.
    if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM " in str(error):
        return StoreFull(
            f"The server's memory is full, so it takes no new job: {error}\n"
            "Jobs that are there go on, and make room as they end; `CONFIG SET maxmemory` with more makes room at once."
        )
    return StoreRejected(str(error))
