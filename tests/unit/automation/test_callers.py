"""Who may ask for what, and which requests another site had a browser send."""

from __future__ import annotations

import pytest

from automation.callers import foreign, is_rebindable, needed, own_page
from automation.page.deeds import Deed
from sluicegate.service_settings import AutomationSettings
from sluicegate.web.roles import Role

HOST = {"host": "gate.example:9109"}


def test_each_role_may_do_what_the_one_before_it_may() -> None:
    allowed = {role: [needs for needs in Role if role.allows(needs)] for role in Role}
    assert allowed == {
        Role.NOTIFY: [Role.NOTIFY],
        Role.VIEW: [Role.VIEW],
        Role.OPERATE: [Role.NOTIFY, Role.VIEW, Role.OPERATE],
        Role.APPROVE: [Role.NOTIFY, Role.VIEW, Role.OPERATE, Role.APPROVE],
    }


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("GET", "/", Role.VIEW),
        ("GET", "/live", Role.VIEW),
        ("GET", "/v1/runs/run-1", Role.VIEW),
        ("HEAD", "/anything", Role.VIEW),
        ("POST", "/webhooks/alertmanager", Role.NOTIFY),
        ("POST", "/webhooks/grafana/", Role.NOTIFY),
        ("POST", "/v1/runs", Role.OPERATE),
        ("POST", "/v1/runs/run-1/abort", Role.OPERATE),
        ("POST", "/v1/runs/run-1/hold", Role.OPERATE),
        ("POST", "/v1/runs/run-1/resume", Role.APPROVE),
        ("POST", "/v1/runs/run-1/approve", Role.APPROVE),
        ("POST", "/v1/runs/a/b/abort", Role.APPROVE),
        ("DELETE", "/v1/runs", Role.OPERATE),
        ("POST", "/what-nobody-thought-of", Role.APPROVE),
        ("GET", "/do/release", Role.APPROVE),
        ("POST", "/do/hold", Role.OPERATE),
    ],
)
def test_a_request_takes_a_role_and_an_unknown_change_the_highest(method: str, path: str, role: Role) -> None:
    assert needed(method, path) is role


def test_what_closes_ends_or_asks_is_operated_and_what_lets_something_go_on_is_approved() -> None:
    by_role = {role: {deed.value for deed in Deed if deed.role is role} for role in (Role.OPERATE, Role.APPROVE)}
    assert by_role[Role.OPERATE] == {"hold", "reject", "drain", "run", "hold-run", "abort", "reconcile"}
    assert by_role[Role.APPROVE] == {"release", "acknowledge", "approve", "resume", "retry", "fail", "succeed"}


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({}, ""),
        ({"sec-fetch-site": "same-origin", "origin": "http://gate.example:9109"}, ""),
        ({"sec-fetch-site": "none"}, ""),
        ({"origin": "https://GATE.example:9109"}, ""),
        ({"sec-fetch-site": "cross-site"}, "cross-site"),
        ({"sec-fetch-site": "same-site"}, "same-site"),
        ({"origin": "null"}, "null"),
        ({"origin": "http://gate.example"}, "gate.example"),
        ({"origin": "http://gate.example:9109.evil.example"}, "evil"),
        ({"origin": "http://[::1"}, "[::1"),
        ({"sec-fetch-site": "same-origin", "origin": "http://evil.example"}, "evil"),
    ],
)
def test_a_browser_s_word_on_where_a_request_is_from_is_taken(headers: dict[str, str], why: str) -> None:
    said = foreign({**HOST, **headers})
    assert bool(said) == bool(why)
    assert why in said


def test_a_form_is_the_page_s_own_only_where_a_browser_vouches_for_it() -> None:
    assert not own_page(HOST)
    assert own_page({**HOST, "sec-fetch-site": "same-origin"})
    assert own_page({**HOST, "origin": "http://gate.example:9109"})
    assert not own_page({**HOST, "origin": "http://evil.example"})


@pytest.mark.parametrize("host", ["127.0.0.1:9109", "[::1]:9109", "10.0.0.7", "localhost:1", "a.localhost"])
def test_an_address_can_t_be_pointed_elsewhere(host: str) -> None:
    assert not is_rebindable(host)


@pytest.mark.parametrize("host", ["evil.example:9109", "", "127.0.0.1.evil.example", "[::1", "localhost.evil.example"])
def test_a_name_can(host: str) -> None:
    assert is_rebindable(host)


def test_roles_without_passwords_are_refused() -> None:
    with pytest.raises(ValueError, match="without passwords nobody has a name"):
        AutomationSettings(roles={"ann": Role.VIEW})
