"""Is an address that no store can use refused before anything connects, and does no message repeat its password?"""

from __future__ import annotations

import pytest

from sluicegate.errors import UsageError
from sluicegate.redis_address import shown
from sluicegate.store import Store

HOST = "127.0.0.1:1"


@pytest.mark.parametrize(
    "address",
    [
        f"redis://{HOST}",
        f"redis://{HOST}/",
        f"redis://{HOST}/15",
        f"redis://{HOST}?db=3",
        f"redis://ann:pass%20word@{HOST}/0",
        f"redis://{HOST}/0?username=ann&password=x&client_name=mill",
        f"rediss://{HOST}/0?ssl_cert_reqs=none",
        "redis://[::1]:6379/0",
        "unix:///run/redis.sock?db=2",
    ],
)
def test_an_address_is_taken_without_a_server(address: str) -> None:
    Store.connect(address).close()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nonsense", "not a Redis address"),
        ("http://127.0.0.1/0", "not a Redis address"),
        ("redis://[", "not a Redis address"),
        (f"redis://{HOST}1234567/0", "not a Redis address"),
        (f"redis://{HOST}/0?db", "not a Redis address"),
        (f"redis://{HOST}/abc", "names the database 'abc', which is not a number"),
        (f"redis://{HOST}/0/1", "names the database '0/1', which is not a number"),
        (f"redis://{HOST}/-1", "names the database '-1', which is not a number"),
        (f"redis://{HOST}?db=one", "names the database 'one', which is not a number"),
        # An address must not take back what a store relies on: text, one try, bounded waits.
        (f"redis://{HOST}/0?decode_responses=no", "sets 'decode_responses'"),
        (f"redis://{HOST}/0?retry_on_timeout=yes", "sets 'retry_on_timeout'"),
        (f"redis://{HOST}/0?socket_timeout=9999", "sets 'socket_timeout'"),
        (f"redis://{HOST}/0?protocol=9", "sets 'protocol'"),
        (f"redis://{HOST}/0?foo=bar", "sets 'foo'"),
        (f"rediss://{HOST}/0?ssl_foo=bar", "not a Redis address"),
        (f"redis://{HOST}/0?ssl_cert_reqs=none", "not a Redis address"),
    ],
)
def test_any_other_address_is_refused_in_a_sentence(address: str, said: str) -> None:
    with pytest.raises(UsageError, match="Redis address") as refused:
        Store.connect(address)
    assert said in str(refused.value)
    assert "redis://HOST:PORT/DB" in refused.value.hint


@pytest.mark.parametrize(
    "address", ["redis://ann:hunter2@h:1/0", "redis://h:1/0?password=hunter2", "redis://:hunter2@h"]
)
def test_an_address_is_shown_without_its_password(address: str) -> None:
    assert "hunter2" not in shown(address)
    assert "h" in shown(address)
    assert shown("redis://h:1/0") == "redis://h:1/0"
