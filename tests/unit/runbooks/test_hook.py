"""What is shown of a call outside holds no secret, and only an http address is ever called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.values import sample
from runbooks.verbs.hook import Hook
from runbooks.where import Where
from sluicegate.errors import SettingsError
from sluicegate.http_address import masked

WHERE = Where("mine.yaml", "rollback.hooks[0]")


def hook(url: str) -> Hook:
    return Hook.read({"url": url, "idempotency_key": "{{ run.id }}/recreate", "on_unknown": "hold"}, WHERE)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8080/fix", "http://127.0.0.1:8080/fix"),
        ("http://[::1]:8080/fix", "http://[::1]:8080/fix"),
        ("https://me:secret@host/fix", "https://***@host/fix"),
        ("https://host/fix?token=secret&empty=", "https://host/fix?token=***&empty=***"),
        ("https://host/hooks/abcdefghijklmnopqrstuvwxyz", "https://host/hooks/***"),
        ("https://host:secret/fix", "***"),
        ("http://[::1", "***"),
        ("https://host/fix#secret", "https://host/fix"),
        ("https://host/fix?secret", "https://host/fix?***"),
        ("https://host/fix;key=secret", "https://host/***"),
    ],
)
def test_secrets_of_a_url_are_masked(url: str, shown: str) -> None:
    assert masked(url) == shown


@given(st.text(alphabet="abcdef0123456789", min_size=21, max_size=40))
def test_a_long_random_part_is_never_shown(secret: str) -> None:
    for url in (f"https://u:{secret}@h/x", f"https://h/{secret}", f"https://h/x?k={secret}", f"https://h/x?{secret}"):
        assert secret not in masked(url)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://host/x", "host/x", "http://", "javascript:alert(1)", "http://h:port"]
)
def test_another_scheme_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="not an http or https address"):
        hook(url).line(sample())


def test_a_hook_says_what_it_sends_and_what_a_lost_outcome_does() -> None:
    assert hook("http://127.0.0.1/recreate").line(sample()) == (
        "POST http://127.0.0.1/recreate with Idempotency-Key {run}/recreate; a lost outcome waits for a named person"
    )


def test_a_hook_without_an_address_in_the_settings_is_not_called() -> None:
    assert hook("{{ automation.fix.hook_url }}").line(sample()) is None


@pytest.mark.parametrize(
    "key", ["überholt/{{ run.id }}", "{{ run.id }}/fix ", " {{ run.id }}", "{{ automation.urls.x }}"]
)
def test_a_key_that_no_header_takes_or_that_may_be_a_secret_is_refused(key: str) -> None:
    with pytest.raises(SettingsError, match=r"hooks\[0\]\.idempotency_key is "):
        Hook.read({"url": "http://h/x", "idempotency_key": key, "on_unknown": "hold"}, WHERE)


@pytest.mark.parametrize("method", ["GET /x", "PÖST", "", "POST\t", "{{ queue }} "])
def test_a_method_that_is_none_is_refused(method: str) -> None:
    with pytest.raises(SettingsError, match=r"hooks\[0\]\.method is "):
        Hook.read({"method": method, "url": "http://h/x", "idempotency_key": "{{ run.id }}"}, WHERE)
