"""Tell one receiver of everything that happens, in order, however long it is away. Never in the way of a run.

The controller that leads tells; whoever leads next goes on with what was not told. A receiver that took a notice and
did not say so is told again under the same key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import httpx
import structlog

from automation.looping import Loop
from automation.metrics import AutomationMetrics
from automation.notices import receivers, silences
from automation.notices.receivers import Ask
from sluicegate.clock import Clock
from sluicegate.notice import Notice
from sluicegate.notice_board import NoticeBoard
from sluicegate.service_settings import ReceiverKind, ReceiverSettings

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 0.5
_ANSWERS_WITHIN_S = 5.0
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 300.0
# So long nobody else takes what a process has taken.
_HELD_MS = 15_000
_COUNT_EVERY_S = 5.0
# Who was away for longer reads what happened elsewhere.
_KEPT_MS = 86_400_000
# A hundred comments of GitHub's longest are less.
_LONGEST_LIST_BYTES = 8 * 1024 * 1024
_WAITS_FOR = frozenset({408, 409, 425, 429})


class Outcome(StrEnum):
    """Name what became of one try."""

    DELIVERED = "delivered"
    AGAIN = "again"  # nobody knows, or it says: later
    REFUSED = "refused"  # it will never take this one
    NOT_WANTED = "not_wanted"  # it is not told of such


@dataclass(frozen=True, slots=True)
class Tried:
    """Say what one try came to, why, and when to come back where the receiver says so."""

    outcome: Outcome
    why: str = ""
    after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what a receiver answered; `body` is read of a list that was asked for, and as far as a list may go."""

    code: int
    retry_after_s: float | None
    body: bytes = b""

    @property
    def took_it(self) -> bool:
        return 200 <= self.code < 300


class Sender:
    """Be the one who tells a receiver; `leads` says whether this process is to tell at all."""

    def __init__(
        self,
        name: str,
        receiver: ReceiverSettings,
        board: NoticeBoard,
        consumer: str,
        leads: Callable[[], bool],
        metrics: AutomationMetrics,
        clock: Clock,
    ) -> None:
        self._name = name
        self._receiver = receiver
        self._board = board
        self._consumer = consumer
        self._leads = leads
        self._metrics = metrics
        self._clock = clock
        self._tries = 0
        self._not_before = 0.0
        self._count_at = 0.0
        self._client: httpx.AsyncClient | None = None
        self._loop = Loop(f"notices-{name}", _LOOK_EVERY_S, self.turn)

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def turn(self) -> None:
        """Tell all that waits, until a try fails."""
        if not self._leads():
            return
        await self._count()
        while self._leads() and self._clock.monotonic() >= self._not_before and await self._tell_next():
            continue

    async def _count(self) -> None:
        if self._clock.monotonic() >= self._count_at:
            self._count_at = self._clock.monotonic() + _COUNT_EVERY_S
            waiting = await asyncio.to_thread(self._board.waiting, self._name)
            self._metrics.notices_waiting.labels(self._name).set(waiting.count)

    async def _tell_next(self) -> bool:
        """Tell of the next one; gives whether to go on at once."""
        taken = await asyncio.to_thread(self._board.take, self._name, self._consumer, _HELD_MS)
        if taken is None:
            return False
        tried = await self._try(taken.notice) if taken.notice is not None else Tried(Outcome.NOT_WANTED)
        self._metrics.notices.labels(self._name, tried.outcome.value).inc()
        if tried.outcome is Outcome.AGAIN:
            self._wait(tried, taken.notice_id)
            return False
        if tried.outcome is Outcome.REFUSED:
            log.error("notice_refused", receiver=self._name, notice=taken.notice_id, why=tried.why)
        await asyncio.to_thread(self._board.told, self._name, taken.notice_id)
        self._tries, self._not_before = 0, 0.0
        return True

    def _wait(self, tried: Tried, notice_id: str) -> None:
        wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**self._tries)
        self._tries = min(self._tries + 1, 16)
        if tried.after_s is not None:
            wait_s = min(_LONGEST_WAIT_S, max(wait_s, tried.after_s))
        self._not_before = self._clock.monotonic() + wait_s
        log.warning("notice_waits", receiver=self._name, notice=notice_id, why=tried.why, again_s=round(wait_s, 1))

    async def _try(self, notice: Notice) -> Tried:
        if notice.kind not in self._receiver.tells:
            return Tried(Outcome.NOT_WANTED)
        if self._clock.now_ms() - notice.at_ms > _KEPT_MS:
            return Tried(Outcome.REFUSED, "it is older than a day")
        try:
            url, token = _read(self._receiver.url, self._receiver.url_file), _read(None, self._receiver.token_file)
        except (OSError, UnicodeDecodeError) as error:
            return Tried(Outcome.AGAIN, f"a file of its settings cannot be read: {type(error).__name__}")
        # An address that is a secret must not get into a log, and errors may repeat it.
        try:
            async with asyncio.timeout(2 * _ANSWERS_WITHIN_S):
                return await self._send(notice, url, token)
        except TimeoutError:
            return Tried(Outcome.AGAIN, "it did not answer in time")
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            return Tried(Outcome.AGAIN, type(error).__name__)

    async def _send(self, notice: Notice, url: str, token: str) -> Tried:
        kind, repo = self._receiver.kind, self._receiver.repo or ""
        if kind is ReceiverKind.GITHUB:
            return await self._tell_github(notice, url, repo, token)
        if kind is ReceiverKind.ALERTMANAGER:
            return await self._end_silences(notice, url)
        ask: Ask | None
        if kind is ReceiverKind.SLACK:
            ask = receivers.slack(notice, url)
        elif kind is ReceiverKind.PAGERDUTY:
            ask = receivers.pagerduty(notice, url, token)
        else:
            ask = receivers.webhook(notice, url, token)
        if ask is None:
            return Tried(Outcome.NOT_WANTED)
        return _judged(await self._ask(ask))

    async def _tell_github(self, notice: Notice, url: str, repo: str, token: str) -> Tried:
        """GitHub knows no key of ours, so it is asked first whether it has this notice."""
        found = await self._ask(receivers.github_search(notice, url, repo, token))
        issues = _listed(found)
        if issues is None:
            return _unlisted(found)
        mark = receivers.mark_of(notice)
        if any(mark in str(issue.get("body", "")) for issue in issues):
            return Tried(Outcome.DELIVERED)
        if not issues:
            return _judged(await self._ask(receivers.github_open(notice, url, repo, token)))
        number = issues[0].get("number")
        if not isinstance(number, int):
            return Tried(Outcome.AGAIN, "its list of issues makes no sense")
        said = await self._ask(receivers.github_comments(notice, number, url, repo, token))
        comments = _listed(said)
        if comments is None:
            return _unlisted(said)
        if any(mark in str(comment.get("body", "")) for comment in comments):
            return Tried(Outcome.DELIVERED)
        return _judged(await self._ask(receivers.github_comment(notice, number, url, repo, token)))

    async def _end_silences(self, notice: Notice, url: str) -> Tried:
        """Take away what silenced the alerts of a run that is over."""
        found = await self._ask(silences.listed(url))
        rows = _listed(found)
        if rows is None:
            return _unlisted(found)
        for silence in silences.of_run(rows, notice.run):
            tried = _judged(await self._ask(silences.removed(url, silence)))
            if tried.outcome is not Outcome.DELIVERED:
                return tried
        return Tried(Outcome.DELIVERED)

    async def _ask(self, ask: Ask) -> Answer:
        """Ask, and read no more than counts: of what was posted that is the status, whatever comes after it."""
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=_ANSWERS_WITHIN_S, follow_redirects=False)
        async with self._client.stream(ask.method, ask.url, json=ask.body, headers=ask.headers) as response:
            answer = Answer(response.status_code, _retry_after(response))
            if ask.method != "GET" or not answer.took_it:
                return answer
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > _LONGEST_LIST_BYTES:
                    break
            return replace(answer, body=bytes(body))


def _read(value: str | None, path: Path | None) -> str:
    """Give a setting, or what its file holds now."""
    return (path.read_text(encoding="utf-8").strip() if path is not None else value) or ""


def _judged(answer: Answer) -> Tried:
    """Judge an answer: 2xx took it, what may pass is tried again, the rest never will."""
    code = answer.code
    if answer.took_it:
        return Tried(Outcome.DELIVERED)
    if code in _WAITS_FOR or code >= 500 or code in (401, 403, 404):
        # Wrong credentials and places are put right by people, and what happened meanwhile is still told then.
        return Tried(Outcome.AGAIN, f"HTTP {code}", answer.retry_after_s)
    return Tried(Outcome.REFUSED, f"HTTP {code}")


def _unlisted(answer: Answer) -> Tried:
    tried = _judged(answer)
    return Tried(Outcome.AGAIN, "its answer is no list") if tried.outcome is Outcome.DELIVERED else tried


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdecimal() and len(text) < 6 else None


def _listed(answer: Answer) -> list[dict[str, object]] | None:
    """Give the objects of a list that was asked for, None where it was not given."""
    if not answer.took_it:
        return None
    try:
        rows = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else None
