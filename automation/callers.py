"""Who asks, and may they? What a request needs by its method and path, and what a browser says of its origin. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from automation.page.deeds import PATH as DEEDS_PATH
from automation.page.deeds import Deed
from sluicegate.web.roles import Role

READS = frozenset({"GET", "HEAD", "OPTIONS"})
# What is posted, and what that takes; anything else that is posted takes the most.
_POSTS: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r"/webhooks/[^/]+/?"), Role.NOTIFY),
    (re.compile(r"/v1/runs"), Role.OPERATE),
    (re.compile(r"/v1/runs/[^/]+/(abort|hold)"), Role.OPERATE),
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Name who asks: `name` where a password proved it, `called` as they call themselves, and their role."""

    name: str = ""
    called: str = ""
    role: Role = Role.APPROVE


def needed(method: str, path: str) -> Role:
    """Give the role that a request takes."""
    for deed in Deed:
        if path == f"{DEEDS_PATH}/{deed}":
            return deed.role
    if method in READS:
        return Role.VIEW
    return next((role for pattern, role in _POSTS if pattern.fullmatch(path)), Role.APPROVE)


def foreign(headers: Mapping[str, str]) -> str:
    """Say why a request is taken for one that another site had a browser send, '' where it is not.

    Browsers send Sec-Fetch-Site on secure pages and Origin with every post; programs send neither.
    """
    site = headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return f"Sec-Fetch-Site is {site:.40}"
    origin = headers.get("origin")
    if origin is not None and _netloc(origin) != headers.get("host", "").lower():
        return f"its Origin is {origin:.80}"
    return ""


def own_page(headers: Mapping[str, str]) -> bool:
    """Say whether a browser vouches that a page of this service sent the request."""
    return ("sec-fetch-site" in headers or "origin" in headers) and not foreign(headers)


def is_rebindable(host: str) -> bool:
    """Say whether a Host header holds a name that somebody else may let point here: any but an address or localhost."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return True
    if name == "localhost" or name.endswith(".localhost"):
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return True
    return False


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
