"""Checking passwords: right, wrong, unknown, changed, and what a flood of guesses does to whoever knows one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import bcrypt
import pytest

from sluicegate.web import passwords as module
from sluicegate.web.credentials import basic
from sluicegate.web.passwords import Passwords, Verdict

PASSWORD = "s3cret-of-the-scraper"
USERS = {"prometheus": bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4))}
HOST = "192.0.2.1"
GUESSER = "192.0.2.66"


@pytest.fixture
def passwords(monkeypatch: pytest.MonkeyPatch) -> Iterator[Passwords]:
    # On a busy machine a hash takes long.
    monkeypatch.setattr(module, "_WAIT_S", 20)
    made = Passwords()
    yield made
    made.close()


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the passwords that were hashed, which is what costs time."""
    seen: list[str] = []
    real = module.matches

    def counted(password: str, hashed: bytes) -> bool:
        seen.append(password)
        return real(password, hashed)

    monkeypatch.setattr(module, "matches", counted)
    return seen


def test_a_right_password_is_hashed_once_and_known_from_then_on(passwords: Passwords, hashes: list[str]) -> None:
    async def ask() -> list[Verdict]:
        return [await passwords.check(USERS, "prometheus", PASSWORD, HOST) for _ in range(5)]

    assert asyncio.run(ask()) == [Verdict.RIGHT] * 5
    assert hashes == [PASSWORD]


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("prometheus", "wrong"),
        ("prometheus", ""),
        ("prometheus", PASSWORD + "x"),
        ("nobody", PASSWORD),
        ("", PASSWORD),
        ("prometheus", "x" * 5000),
    ],
)
def test_any_other_pair_is_wrong_each_time_and_costs_a_hash(
    passwords: Passwords, hashes: list[str], name: str, password: str
) -> None:
    async def ask() -> list[Verdict]:
        return [await passwords.check(USERS, name, password, HOST) for _ in range(2)]

    assert asyncio.run(ask()) == [Verdict.WRONG] * 2
    assert len(hashes) == 2


def test_a_password_that_bcrypt_would_cut_short_is_wrong() -> None:
    longest = "x" * 72
    hashed = bcrypt.hashpw(longest.encode(), bcrypt.gensalt(4))
    assert module.matches(longest, hashed)
    assert not module.matches(longest + "y", hashed)


def test_a_changed_hash_makes_the_old_password_wrong_at_once(passwords: Passwords) -> None:
    changed = {"prometheus": bcrypt.hashpw(b"another", bcrypt.gensalt(4))}

    async def ask() -> list[Verdict]:
        return [
            await passwords.check(USERS, "prometheus", PASSWORD, HOST),
            await passwords.check(changed, "prometheus", PASSWORD, HOST),
            await passwords.check(changed, "prometheus", "another", HOST),
        ]

    assert asyncio.run(ask()) == [Verdict.RIGHT, Verdict.WRONG, Verdict.RIGHT]


def flooded(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch, then: Callable[[], Coroutine[Any, Any, None]]
) -> list[Verdict]:
    """Guess 200 times at once from one address while hashing stands still; do `then` meanwhile; give the verdicts."""
    goes_on = threading.Event()

    def stands(password: str, hashed: bytes) -> bool:
        goes_on.wait(10)
        return bcrypt.checkpw(password.encode(), hashed)

    async def run() -> list[Verdict]:
        assert await passwords.check(USERS, "prometheus", PASSWORD, HOST) is Verdict.RIGHT
        monkeypatch.setattr(module, "matches", stands)
        guesses = [passwords.check(USERS, "prometheus", f"guess {n}", GUESSER) for n in range(200)]
        waiting = asyncio.gather(*guesses)
        await asyncio.sleep(0)
        try:
            await then()
        finally:
            goes_on.set()
        return list(await waiting)

    return asyncio.run(run())


def test_a_flood_of_guesses_does_not_stall_a_known_scraper(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scrape() -> None:
        # Not one of the guesses is answered yet.
        for _ in range(100):
            assert await passwords.check(USERS, "prometheus", PASSWORD, HOST) is Verdict.RIGHT
        assert passwords.waiting == 4

    verdicts = flooded(passwords, monkeypatch, scrape)

    assert verdicts.count(Verdict.BUSY) >= 196
    assert verdicts.count(Verdict.RIGHT) == 0
    assert passwords.waiting == 0


def test_a_check_that_took_too_long_is_found_by_who_comes_back(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAIT_S", 0.05)
    goes_on = threading.Event()
    real, asked = module.matches, []

    def slow(password: str, hashed: bytes) -> bool:
        asked.append(password)
        goes_on.wait(10)
        return real(password, hashed)

    monkeypatch.setattr(module, "matches", slow)

    async def come_back() -> Verdict:
        for _ in range(3):
            assert await passwords.check(USERS, "prometheus", PASSWORD, HOST) is Verdict.BUSY
        assert passwords.waiting == 1
        goes_on.set()
        while (verdict := await passwords.check(USERS, "prometheus", PASSWORD, HOST)) is Verdict.BUSY:
            pass
        return verdict

    assert asyncio.run(asyncio.wait_for(come_back(), 10)) is Verdict.RIGHT
    assert asked == [PASSWORD]


def test_a_flood_from_one_address_leaves_room_for_another(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAIT_S", 0.05)

    async def scrape() -> None:
        # One that is not known yet gets a place, and waits for its turn no longer than that.
        assert await passwords.check(USERS, "prometheus", "not known yet", HOST) is Verdict.BUSY
        assert passwords.waiting == 5

    flooded(passwords, monkeypatch, scrape)


@pytest.mark.parametrize(
    ("header", "pair"),
    [
        ("Basic cHJvbWV0aGV1czpz", ("prometheus", "s")),
        ("basic  cHJvbWV0aGV1czpz ", ("prometheus", "s")),
        ("Basic YTpiOmM=", ("a", "b:c")),
        ("Basic Og==", ("", "")),
        (None, None),
        ("", None),
        ("Basic", None),
        ("Basic !!!", None),
        ("Basic YWJj", None),
        ("Basic /////w==", None),
        ("Bearer cHJvbWV0aGV1czpz", None),
        (f"Basic {'QUFB' * 1000}", None),
    ],
)
def test_credentials_are_read_or_there_are_none(header: str | None, pair: tuple[str, str] | None) -> None:
    assert basic(header) == pair
