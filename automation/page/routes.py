"""Answer the page's requests: the page itself, its stream, a run, and each deed's confirmation and its doing."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from urllib.parse import parse_qs

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from markupsafe import Markup

from automation.bodies import read_body
from automation.callers import Caller, own_page
from automation.headers import HEADERS
from automation.page.confirmation import Confirmation, Grounds, confirmation
from automation.page.deeds import LABELS, PATH, Deed, Offer, Target
from automation.page.doing import Doing
from automation.page.evidence import PageEvidence
from automation.page.feed import Feed, State
from automation.page.form_token import FormTokens
from automation.page.frames import PARTS, Frames
from automation.page.run import run_panel
from automation.page.templates import Templates
from automation.page.words import clock
from runbooks.model import Runbook
from sluicegate.console import person
from sluicegate.errors import StoreError, UsageError
from sluicegate.gate_sentences import Said
from sluicegate.settings import Settings
from sluicegate.store import Store

_OUTCOMES = 200
_MOST_FIELDS = 20
# A stream ends after so long and its page opens another: who may no longer watch does not go on watching.
STREAM_S = 300.0


class Page:
    """Hold what the routes share."""

    def __init__(self, store: Store, feed: Feed, runbooks: Mapping[str, Runbook], settings: Settings) -> None:
        self.feed = feed
        self.templates = Templates()
        self._store = store
        self._runbooks = dict(runbooks)
        self._settings = settings
        self.evidence = PageEvidence(feed, runbooks, settings)
        self._frames = Frames(feed, self.templates, runbooks, settings, self.evidence)
        self._tokens = FormTokens()
        self._doing = Doing(store, self._runbooks, settings.reconcile)
        self._outcomes: OrderedDict[str, Said] = OrderedDict()

    async def show(self, request: Request) -> Response:
        """Show everything as it is now; after a deed, what became of it."""
        state = await self.feed.now()
        caller = _caller(request)
        outcome = self._outcomes.get(request.query_params.get("outcome", ""))
        frame = self._frames.frame(state, caller.role)
        if not frame.parts and state.reading is not None:
            parts = self._frames.parts(state.reading, caller.role)
        else:
            parts = {name: frame.parts.get(name, "") for name in PARTS}
        return self._html(
            request,
            "page",
            200 if state.reading is not None else 503,
            parts={name: Markup(html) for name, html in parts.items()},  # noqa: S704 (rendered with autoescape)
            title=frame.title,
            at=clock(state.reading.telemetry.at_ms) if state.reading is not None else "never",
            failed=state.failed,
            since=clock(state.since_ms),
            outcome=outcome,
        )

    async def live(self, request: Request) -> Response:
        """Stream what changes, for as long as the page is open."""
        if self.feed.full:
            return self._message(request, 503, "Too many watch", "As many pages as may be are live already.")
        return StreamingResponse(
            self._events(_caller(request)),
            media_type="text/event-stream",
            headers={**HEADERS, "X-Accel-Buffering": "no"},
        )

    async def _events(self, caller: Caller) -> AsyncIterator[bytes]:
        seen, ends = -1, time.monotonic() + STREAM_S
        async for state in self.feed.watch():
            frame = self._frames.frame(state, caller.role)
            yield frame.event(seen)
            seen = frame.version
            if time.monotonic() >= ends:
                return

    async def run(self, request: Request, run: str) -> Response:
        """Show one run with all of its journal."""
        try:
            history = await asyncio.to_thread(self._store.run, run)
        except StoreError as error:
            return self._unanswered(request, error)
        if history is None:
            return self._message(request, 404, "No such run", f"There is no run {run}.")
        return self._html(request, "run", it=run_panel(history, self._runbooks, self._settings))

    async def confirm(self, request: Request, deed: str) -> Response:
        """Say what a deed will do, and ask for a name and a reason."""
        if deed not in set(Deed):
            return self._message(request, 404, "No such deed", "There is nothing of this name to do.")
        target = _target(request)
        made = await self._made(request, Deed(deed), target)
        return made if isinstance(made, Response) else self._ask(request, made, target)

    async def do(self, request: Request, deed: str) -> Response:
        """Do what was confirmed, once, and lead back to the page, which says what became of it."""
        if deed not in set(Deed):
            return self._message(request, 404, "No such deed", "There is nothing of this name to do.")
        body = await read_body(request)
        if isinstance(body, Response):
            return body
        fields = _fields(body)
        target, token = _target(request), fields.get("token", "")
        place = Offer(Deed(deed), target).address
        if not own_page(request.headers) or not self._tokens.is_good(token, _caller(request), place):
            said = "This form is not of this page, or it has waited too long. Nothing was changed: open it again."
            return self._message(request, 403, "Not taken", said)
        made = await self._made(request, Deed(deed), target)
        if isinstance(made, Response):
            return made
        return await self._confirmed(request, made, target, fields)

    async def _confirmed(
        self, request: Request, made: Confirmation, target: Target, fields: Mapping[str, str]
    ) -> Response:
        deed, token, caller = made.deed, fields["token"], _caller(request)
        actor, reason = caller.name or fields.get("actor", ""), fields.get("reason", "")
        try:
            who = person(actor, reason)
        except UsageError:
            error = "A name of at most 64 characters and a reason of at most 500 are needed, each in one line."
            return self._ask(request, made, target, 422, error, actor, reason)
        before = self._tokens.use(token)
        if before is not None:
            return _back(before)
        if fields.get("seen", "") != made.seen and not deed.tightens:
            error = "This has changed since the page was made, so nothing was done. Read again what will happen now."
            return self._ask(request, made, target, 409, error, actor, reason)
        try:
            said = await self._doing.do(deed, target, who, fields.get("seen", ""))
        except StoreError as error:
            return self._unanswered(request, error)
        await self.feed.anew()
        return _back(self._keep(token, said))

    def _keep(self, token: str, said: Said) -> str:
        mark = secrets.token_hex(8)
        self._outcomes[mark] = said
        while len(self._outcomes) > _OUTCOMES:
            self._outcomes.popitem(last=False)
        self._tokens.leave(token, mark)
        return mark

    async def _made(self, request: Request, deed: Deed, target: Target) -> Confirmation | Response:
        """Make the confirmation from what is read now."""
        state = await self.feed.anew()
        if state.reading is None or state.failed:
            return self._unread(request, state)
        try:
            job = await asyncio.to_thread(self._store.job, target.job) if target.job else None
        except StoreError as error:
            return self._unanswered(request, error)
        return confirmation(deed, target, Grounds(state.reading, self._runbooks, self._settings, job))

    def _ask(
        self,
        request: Request,
        made: Confirmation,
        target: Target,
        code: int = 200,
        error: str = "",
        actor: str = "",
        reason: str = "",
    ) -> Response:
        caller = _caller(request)
        address = Offer(made.deed, target).address
        return self._html(
            request,
            "confirm",
            code,
            it=made,
            address=address,
            label=LABELS[made.deed],
            token=self._tokens.make(caller, address),
            actor=caller.name or actor or caller.called,
            reason=reason,
            error=error,
        )

    def _unread(self, request: Request, state: State) -> Response:
        said = f"The queue's server does not answer: {state.failed}. Nothing was changed."
        return self._message(request, 503, "The queue cannot be read", said)

    def _unanswered(self, request: Request, error: StoreError) -> Response:
        said = f"The queue's server did not answer: {error}. Look at the gate before you do it again."
        return self._message(request, 503, "No answer", said)

    def _message(self, request: Request, code: int, title: str, sentence: str) -> Response:
        return self._html(request, "message", code, title=title, sentence=sentence)

    def _html(self, request: Request, template: str, code: int = 200, **values: object) -> Response:
        html = self.templates.render(template, caller=_caller(request), queue=self._store.queue, **values)
        return HTMLResponse(html, code, headers=HEADERS)


def add_page(app: FastAPI, page: Page) -> None:
    """Add the page's routes."""
    app.add_api_route("/", page.show, methods=["GET"], include_in_schema=False)
    app.add_api_route("/live", page.live, methods=["GET"], include_in_schema=False)
    app.add_api_route("/runs/{run}", page.run, methods=["GET"], include_in_schema=False)
    app.add_api_route(f"{PATH}/{{deed}}", page.confirm, methods=["GET"], include_in_schema=False)
    app.add_api_route(f"{PATH}/{{deed}}", page.do, methods=["POST"], include_in_schema=False)

    @app.get("/static/{build}/{name}", include_in_schema=False)
    async def static(build: str, name: str) -> Response:
        file = page.templates.static.get(name) if build == page.templates.build else None
        if file is None:
            return Response("There is no such file.", 404, headers=HEADERS)
        kept = {"Cache-Control": "private, max-age=86400, immutable"}
        return Response(file.body, media_type=file.media_type, headers={**HEADERS, **kept})


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _target(request: Request) -> Target:
    given = request.query_params
    return Target(given.get("run", ""), given.get("step", ""), given.get("job", ""), given.get("runbook", ""))


def _fields(body: bytes) -> dict[str, str]:
    """Read a form; what is no form has no fields, and each field counts once."""
    try:
        parsed = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return {}
    return {name: values[0] for name, values in parsed.items()}


def _back(mark: str) -> Response:
    return RedirectResponse(f"/?outcome={mark}" if mark else "/", 303, headers=HEADERS)
