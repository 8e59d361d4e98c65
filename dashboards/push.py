"""Send dashboards to a Grafana over its HTTP API. No message ever holds the token."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from sluicegate.errors import GrafanaFailed, UsageError
from sluicegate.http_address import place

_MESSAGE = "sluicegate dashboards push"
_FOLDER_TITLE = "Sluicegate"
_LONGEST_SAID = 300
# What Grafana gives every dashboard of its own, and what a push leaves to it.
_OF_GRAFANA = ("id", "version")
_HINTS = {
    httpx.codes.UNAUTHORIZED: "Is it the token of a service account, and not one that has expired?",
    httpx.codes.FORBIDDEN: "The service account needs the role Editor, or may write in that folder.",
}


class Outcome(StrEnum):
    """Name what became of a dashboard."""

    CREATED = "created"  # it was not there
    REPLACED = "replaced"  # it was there and differed, and was to be overwritten
    UP_TO_DATE = "up to date"  # it was there already
    CONFLICT = "left alone"  # it is there and differs


@dataclass(frozen=True, slots=True)
class Pushed:
    """Hold what became of a dashboard, and what is to be said about it."""

    outcome: Outcome
    said: str = ""

    @property
    def is_conflict(self) -> bool:
        return self.outcome is Outcome.CONFLICT


class Grafana:
    """Talk to one Grafana; used in a `with` block.

    Raises GrafanaFailed where it does not answer in time or does not take something, and UsageError for an address or a
    token that can be none.
    """

    def __init__(self, url: str, token: str, *, within_s: float) -> None:
        self._place = place(url, "http://127.0.0.1:3000")
        if not (token.isascii() and token.isprintable()):
            raise UsageError(
                "The token for Grafana holds signs that no token has.", "The file holds it and nothing else."
            )
        self._token = token
        self._within_s = within_s
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=within_s,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def provide_folder(self, uid: str) -> None:
        """Make the folder unless it is there."""
        path = f"/api/folders/{quote(uid, safe='')}"
        if self._get(path, "the folder") is not None:
            return
        title = _FOLDER_TITLE if uid == _FOLDER_TITLE.lower() else uid
        answer = self._send("POST", "/api/folders", {"uid": uid, "title": title})
        is_taken = answer.status_code in {httpx.codes.CONFLICT, httpx.codes.PRECONDITION_FAILED}
        # Somebody else may have made it in this moment; or another folder has its name.
        if not (is_taken and self._get(path, "the folder") is not None):
            self._refuse(answer, f"to make the folder {uid}")

    def push(self, dashboard: Mapping[str, object], folder: str, *, overwrite: bool) -> Pushed:
        """Bring one dashboard into a folder; one that is there and differs is replaced only with `overwrite`."""
        uid = str(dashboard["uid"])
        there = self._get(f"/api/dashboards/uid/{quote(uid, safe='')}", f"the dashboard {uid}")
        wanted = _content(dashboard)
        if there is not None and _content(_mapping(there, "dashboard")) == wanted and _folder(there) == folder:
            return Pushed(Outcome.UP_TO_DATE)
        body = {"dashboard": wanted, "folderUid": folder, "message": _MESSAGE, "overwrite": overwrite}
        answer = self._send("POST", "/api/dashboards/db", body)
        if answer.status_code == httpx.codes.PRECONDITION_FAILED:
            return Pushed(Outcome.CONFLICT, f": {self._said(answer)}{self._plain(_last_change(there))}.")
        self._refuse(answer, f"the dashboard {uid}")
        return Pushed(Outcome.CREATED if there is None else Outcome.REPLACED)

    def _get(self, path: str, what: str) -> Mapping[str, Any] | None:
        """Ask for something; None where it is not there."""
        answer = self._send("GET", path)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        self._refuse(answer, f"to be asked for {what}")
        body = _json(answer)
        if body is None:
            raise GrafanaFailed(f"{self._place} answered {answer.status_code} with what is no JSON: is it a Grafana?")
        return body

    def _send(self, method: str, path: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        with self._talking():
            return self._http.request(method, path, json=body)

    @contextmanager
    def _talking(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException as error:
            raise GrafanaFailed(f"Grafana at {self._place} has not answered within {self._within_s:g} s.") from error
        except httpx.HTTPError as error:
            raise GrafanaFailed(f"Grafana at {self._place} can't be reached: {self._plain(str(error))}.") from error

    def _refuse(self, answer: httpx.Response, what: str) -> None:
        """Raise GrafanaFailed unless the answer says that it was done."""
        if answer.is_success:
            return
        if answer.is_redirect:
            raise GrafanaFailed(f"Grafana at {self._place} sends to another address; name that one.")
        hint = _HINTS.get(httpx.codes(answer.status_code)) if answer.status_code in list(httpx.codes) else None
        sentence = f"Grafana at {self._place} refused {what} with {answer.status_code}: {self._said(answer)}."
        raise GrafanaFailed(f"{sentence}\n{hint}" if hint else sentence)

    def _said(self, answer: httpx.Response) -> str:
        """Give Grafana's own words, on one line and without the token, whatever they hold."""
        body = _json(answer) or {}
        return self._plain(str(body.get("message") or "no reason given"))

    def _plain(self, text: str) -> str:
        line = re.sub(r"\s+", " ", text).replace(self._token, "***").rstrip(".")
        return line if len(line) <= _LONGEST_SAID else f"{line[:_LONGEST_SAID]}…"


def _json(answer: httpx.Response) -> Mapping[str, Any] | None:
    try:
        body = answer.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _mapping(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = body.get(key)
    return found if isinstance(found, dict) else {}


def _content(dashboard: Mapping[str, object]) -> dict[str, object]:
    """Leave out what is Grafana's: without a version it takes the dashboard for new, unless it is to overwrite."""
    return {name: value for name, value in dashboard.items() if name not in _OF_GRAFANA}


def _folder(there: Mapping[str, Any]) -> str:
    return str(_mapping(there, "meta").get("folderUid") or "")


def _last_change(there: Mapping[str, Any] | None) -> str:
    """Tell who changed a dashboard last, where Grafana told it."""
    meta = _mapping(there or {}, "meta")
    by, at, version = (str(meta.get(name) or "") for name in ("updatedBy", "updated", "version"))
    told = [f"version {version}" if version else "", f"by {by}" if by else "", f"of {at}" if at else ""]
    words = " ".join(word for word in told if word)
    return f" ({words})" if words else ""
