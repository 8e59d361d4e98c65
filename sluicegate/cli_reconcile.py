"""Parse `sluicegate queue unknown|blocked|reconcile|retry|fail`, and wire them."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from sluicegate.console import (
    Actor,
    Queue,
    RedisUrl,
    SettingsFile,
    Why,
    fail,
    opened,
    person,
    refuse_no_queue,
    settings_of,
)
from sluicegate.reconcile import Reconciled, Verdict, by_person
from sluicegate.reconciler import Reconciler
from sluicegate.settings import Settings
from sluicegate.store import Store

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many ids, the oldest first.")]


def unknown(limit: Limit = 100, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None) -> None:
    """List the jobs whose end nobody saw; `queue reconcile` settles them."""
    with opened(settings_of(settings, redis_url, queue)) as store:
        _list(store, "unknown", limit)


def blocked(limit: Limit = 100, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None) -> None:
    """List the jobs that wait for a person's decision; `queue retry` and `queue fail` settle them."""
    with opened(settings_of(settings, redis_url, queue)) as store:
        _list(store, "blocked", limit)


def reconcile(
    job_id: JobId,
    actor: Actor,
    reason: Why,
    *,
    outcome: Annotated[
        Verdict | None, typer.Option("--outcome", help="What you know of it; without it the resolvers are asked.")
    ] = None,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Settle a job that is unknown or blocked, by name: by what you know of it, or by asking the resolvers now."""
    loaded = settings_of(settings, redis_url, queue)
    if outcome is not None:
        _by_name(loaded, job_id, outcome, actor, reason)
        return
    who = person(actor, reason)
    with opened(loaded) as store:
        answer, finding = asyncio.run(Reconciler(store, loaded.reconcile).one(job_id, f"{who.name}: {who.reason}"))
    if answer.answer == "unclear" and finding is not None:
        raise fail(
            f"Nobody can tell what became of job {job_id}: {finding.why}. It stays unknown.",
            "Look at the provider, then say it with --outcome.",
        )
    _say(loaded, job_id, answer)


def retry(
    job_id: JobId,
    actor: Actor,
    reason: Why,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Let an unknown or blocked job run again under the same key: you say that a repeat is safe."""
    _by_name(settings_of(settings, redis_url, queue), job_id, Verdict.RETRY, actor, reason)


def fail_job(
    job_id: JobId,
    actor: Actor,
    reason: Why,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """End an unknown or blocked job as failed: it was not done and will not be."""
    _by_name(settings_of(settings, redis_url, queue), job_id, Verdict.FAILED, actor, reason)


def _by_name(loaded: Settings, job_id: str, verdict: Verdict, actor: str, reason: str) -> None:
    who = person(actor, reason)
    with opened(loaded) as store:
        answer = by_person(store, job_id, verdict, actor=who.name, reason=who.reason)
    _say(loaded, job_id, answer)


def _say(settings: Settings, job_id: str, answer: Reconciled) -> None:
    if answer.answer == "gone":
        raise no_such_job(job_id, settings)
    if answer.answer != "moved":
        raise fail(
            f"Job {job_id} is {answer.state}: only an unknown job, or a blocked one, can be reconciled so.",
            f"`sluicegate queue show {job_id}` shows what became of it.",
        )
    typer.echo(f"Job {job_id} is {answer.state} now.")


def no_such_job(job_id: str, settings: Settings) -> Exception:
    """Make the error for an id that the queue does not know."""
    return fail(
        f"Queue {settings.queue} has no job {job_id}.",
        "A job that has ended is kept for a day, or twice the longest deadline.",
    )


def _list(store: Store, state: str, limit: int) -> None:
    ids = store.list_jobs(state, limit)
    if not ids:
        refuse_no_queue(store)
    for job_id in ids:
        typer.echo(job_id)
    typer.echo(f"{len(ids)} {state}.", err=True)
