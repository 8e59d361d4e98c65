"""Which server is taken for the primary, by what each Sentinel says."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from sluicegate.redis_clients import Sentinels

OLD, NEW = ("10.0.0.1", 6379), ("10.0.0.2", 6379)


class View:
    """Be one Sentinel: the primary it names, the one in its list, and whether that is down; or one that is unheard."""

    def __init__(self, named: tuple[str, int] | None = None, listed: tuple[str, int] = OLD, down: str = "") -> None:
        self._named = named
        self._state: dict[str, Any] = {"ip": listed[0], "port": listed[1], "is_sdown": False, "is_odown": False}
        if down:
            self._state[down] = True
        self.unheard = False
        self.refuses = False

    def execute_command(self, *words: str) -> list[str] | None:
        assert words == ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "the-queue")
        if self.unheard:
            raise redis.exceptions.TimeoutError("no answer")
        if self.refuses:
            raise redis.exceptions.NoPermissionError("this user has no permissions")
        return [self._named[0], str(self._named[1])] if self._named else None

    def sentinel_master(self, name: str) -> dict[str, Any]:
        assert name == "the-queue"
        return self._state


def asked(*views: View) -> Any:
    untyped: Any = Sentinels
    sentinels = untyped([])
    sentinels.sentinels = list(views)
    return sentinels


def test_the_one_that_was_just_promoted_is_the_primary_though_the_old_one_is_up_again() -> None:
    assert asked(View(NEW, listed=OLD)).discover_master("the-queue") == NEW


def test_one_that_stands_and_is_up_is_the_primary() -> None:
    assert asked(View(OLD, listed=OLD)).discover_master("the-queue") == OLD


@pytest.mark.parametrize("flag", ["is_sdown", "is_odown"])
def test_one_that_is_down_is_none_and_the_next_sentinel_is_asked_and_stays_the_first(flag: str) -> None:
    behind, ahead = View(OLD, down=flag), View(NEW, listed=NEW)
    sentinels = asked(behind, ahead)
    assert sentinels.discover_master("the-queue") == NEW
    assert sentinels.sentinels == [ahead, behind]


def test_no_sentinel_is_forgotten_where_two_threads_find_the_same_one(monkeypatch: pytest.MonkeyPatch) -> None:
    silent, second, third = View(), View(NEW, listed=NEW), View(NEW, listed=NEW)
    silent.unheard = True
    sentinels = asked(silent, second, third)

    def another_thread_asks(*words: str) -> list[str]:
        monkeypatch.undo()
        assert sentinels.discover_master("the-queue") == NEW
        return [NEW[0], str(NEW[1])]

    monkeypatch.setattr(second, "execute_command", another_thread_asks)
    assert sentinels.discover_master("the-queue") == NEW
    assert sentinels.sentinels[0] is second
    assert {id(one) for one in sentinels.sentinels} == {id(one) for one in (silent, second, third)}


def test_who_is_unheard_or_does_not_know_the_service_is_passed_over() -> None:
    silent = View(OLD)
    silent.unheard = True
    assert asked(silent, View(None), View(NEW, listed=NEW)).discover_master("the-queue") == NEW
    with pytest.raises(redis.exceptions.ConnectionError, match=r"No primary found for 'the-queue'; no answer"):
        asked(View(None), silent).discover_master("the-queue")


def test_one_that_refuses_is_passed_over_and_where_each_refuses_that_is_the_answer() -> None:
    refusing, silent = View(OLD), View(OLD)
    refusing.refuses = silent.unheard = True
    assert asked(refusing, View(NEW, listed=NEW)).discover_master("the-queue") == NEW
    with pytest.raises(redis.exceptions.NoPermissionError):
        asked(refusing, refusing).discover_master("the-queue")
    for others in ((silent,), (View(None),)):
        with pytest.raises(redis.exceptions.ConnectionError, match="this user has no permissions"):
            asked(refusing, *others).discover_master("the-queue")
