"""Parse `sluicegate queue …` and wire it."""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from sluicegate import cli_doctor, cli_reconcile, cli_snapshot, functions, logs, remedies
from sluicegate.console import (
    Actor,
    AsJson,
    Host,
    Port,
    Queue,
    RedisUrl,
    SettingsFile,
    Why,
    command_line,
    contract_of,
    fail,
    opened,
    person,
    refuse_unopened,
    settings_of,
)
from sluicegate.errors import NoLogin, SluicegateError, StoreError, StoreUnavailable, UsageError
from sluicegate.producer import Producer
from sluicegate.queue_sentences import decision_sentence, job_lines, unanswered_sentence
from sluicegate.queue_stats import stats_json, stats_text
from sluicegate.queue_watch import ANEW, looks
from sluicegate.redis_address import ELSEWHERE, LOGIN, place
from sluicegate.setting_rows import setting_rows
from sluicegate.settings import Settings
from sluicegate.store import Store
from sluicegate.tables import table_lines, terminal_width

app = command_line(
    "Open a queue, apply its contract, submit to it and look into it.",
    'sluicegate queue init --settings sluicegate.yaml --as ann --reason "first queue"',
)

# A day between two looks is no watching any more.
_LONGEST_PAUSE_S = 86_400.0

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]


@app.command(epilog='Example: sluicegate queue init --settings sluicegate.yaml --as ann --reason "first queue"')
def init(
    actor: Actor, reason: Why, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Open a new queue with the settings' contract; refused where anything of a queue exists."""
    who = person(actor, reason)
    loaded = contract_of(settings, redis_url, queue, "sluicegate queue init")
    contract = loaded.contract
    with opened(loaded) as store:
        answer = store.init_queue(contract.for_redis(), contract.digest(), who.name, who.reason)
    if answer.answer == "old_layout":
        raise _old_layout(loaded.queue, (answer.why,))
    if answer.answer != "moved":
        raise fail(
            f"Queue {loaded.queue} exists already: the key {answer.why} is there.",
            f"`{remedies.QUEUE_APPLY}` changes its contract or writes a lost one anew; "
            f"then `{remedies.GATE_OPEN}` opens its gate.",
        )
    typer.echo(f"Queue {loaded.queue} is open, with contract {contract.digest()}.")


@app.command(epilog='Example: sluicegate queue apply --settings sluicegate.yaml --as ann --reason "more workers"')
def apply(
    actor: Actor, reason: Why, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Put the settings' contract into force for every client of a queue."""
    who = person(actor, reason)
    loaded = contract_of(settings, redis_url, queue, "sluicegate queue apply")
    contract = loaded.contract
    _check_layout(loaded)
    with opened(loaded) as store:
        store.load()
        answer = store.apply_settings(contract.for_redis(), contract.digest(), who.name, who.reason)
    if answer == "unreadable":
        raise fail(f"There is no queue {loaded.queue} yet.", f"`{remedies.QUEUE_INIT}` opens it.")
    done = "is in force now" if answer == "moved" else "was in force already"
    typer.echo(f"Contract {contract.digest()} {done} for queue {loaded.queue}.")


@app.command(epilog='Example: sluicegate queue upgrade --as ann --reason "every process runs the new version"')
def upgrade(
    actor: Actor, reason: Why, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Replace the server's function library by this version's, for all its queues; when no older process is left."""
    who = person(actor, reason)
    loaded = settings_of(settings, redis_url, queue)
    _check_layout(loaded)
    with opened(loaded) as store:
        was, now, noted = store.replace_library(who.name, who.reason)
    done = f"is {now} now; it was {was}" if was != now else f"was {now} already"
    typer.echo(f"The function library {functions.LIBRARY} {done}.")
    if not noted:
        typer.echo(f"Queue {loaded.queue} is not open here, so no gate log has who did it and why.", err=True)


def _check_layout(settings: Settings) -> None:
    """Raise where the queue holds what version 1 of the layout wrote: under this version it would be forgotten.

    A reader brings its own source, whatever library the server has.
    """
    with opened(settings, read_only=True) as store:
        old = store.strange_keys().old
    if old:
        raise _old_layout(settings.queue, old)


def _old_layout(queue: str, old: tuple[str, ...]) -> SluicegateError:
    more = f" and {len(old) - 1} more" if len(old) > 1 else ""
    return fail(
        f"Queue {queue} was written by version 1 of Sluicegate's layout: the key {old[0]}{more} is there, and this "
        "version would forget its jobs and its decisions.",
        "Let that version finish its jobs, then open the queue anew on an empty database or under another name "
        "(`--queue NAME`).",
    )


@app.command(epilog="Example: sluicegate queue stats --json")
def stats(
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show them again and again until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option("--every", metavar="S", min=0.1, help="Seconds between two looks.")] = 2.0,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Show how close the jobs are to their deadlines, by state and class: the figures that the exporter shows.

    Exit 1 where no queue is open; a watch that has begun goes on and shows that it is gone.
    """
    if not every <= _LONGEST_PAUSE_S:
        raise UsageError(f"--every is {every:g} s, not 0.1 to {_LONGEST_PAUSE_S:g} s.")
    loaded = settings_of(settings, redis_url, queue)
    shown = stats_json if as_json else stats_text
    with opened(loaded, read_only=True) as store:
        looked = looks(store, every) if watch else iter((store.observe(),))
        first = next(looked)
        refuse_unopened(first)
        for telemetry in chain((first,), looked):
            typer.echo((ANEW if watch and sys.stdout.isatty() and not as_json else "") + shown(telemetry))
            # Whoever reads a pipe waits for this look, not for a full buffer.
            sys.stdout.flush()


@app.command(epilog='Example: sluicegate queue submit lint-fix \'{"path":"a.py"}\' --key commit-4711 --deadline 45')
def submit(
    job_class: Annotated[str, typer.Argument(metavar="CLASS", help="A declared class.")],
    payload: Annotated[str, typer.Argument(metavar="PAYLOAD", help="What the provider gets.")],
    *,
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key, which is the job's id; by default a new one.")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option("--deadline", metavar="S", help="Seconds from now; by default the class's.")
    ] = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Ask for a job; exit 1 where it is refused. The same key again gives the same answer."""
    with opened(settings_of(settings, redis_url, queue)) as store:
        producer = Producer(store)
        submission = producer.prepare(job_class, payload, idempotency_key=key, deadline_s=deadline)
        try:
            (decision,) = producer.submit_many((submission,))
        except StoreUnavailable:
            typer.echo(unanswered_sentence(submission.job_id), err=True)
            raise
    if as_json:
        fields = ("accepted", "job_id", "reason", "retry_after_s", "replayed")
        typer.echo(json.dumps({name: getattr(decision, name) for name in fields}))
    else:
        typer.echo(decision_sentence(decision, key), err=not decision.accepted)
    if not decision.accepted:
        raise typer.Exit(1)


@app.command(epilog="Example: sluicegate queue show 01JDX8Q4S0F1W2E3R4T5Y6U7I8")
def show(
    job_id: JobId,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
) -> None:
    """Show one job: its record, its decision and what the ledger has of it."""
    loaded = settings_of(settings, redis_url, queue)
    with opened(loaded) as store:
        record = store.job(job_id)
    if record is None:
        raise cli_reconcile.no_such_job(job_id, loaded)
    if as_json:
        typer.echo(json.dumps(dict(record)))
        return
    for line in job_lines(job_id, record):
        typer.echo(line)


app.command(epilog="Example: sluicegate queue unknown")(cli_reconcile.unknown)
app.command(epilog="Example: sluicegate queue blocked")(cli_reconcile.blocked)
app.command(epilog='Example: sluicegate queue reconcile 01JDX8Q4S0 --outcome retry --as ann --reason "not in the log"')(
    cli_reconcile.reconcile
)
app.command(epilog='Example: sluicegate queue retry 01JDX8Q4S0 --as ann --reason "the provider never saw it"')(
    cli_reconcile.retry
)
app.command("fail", epilog='Example: sluicegate queue fail 01JDX8Q4S0 --as ann --reason "the customer gave up"')(
    cli_reconcile.fail_job
)


@app.command("settings", epilog="Example: sluicegate queue settings --settings sluicegate.yaml")
def show_settings(
    as_json: AsJson = False, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Show every setting: default, bound, its value here and the one in force (the contract's is in Redis)."""
    loaded = settings_of(settings, redis_url, queue)
    stored, said = _stored_contract(loaded, own_file=settings is not None)
    try:
        rows = setting_rows(loaded, stored)
    except (ValueError, KeyError, TypeError, AttributeError):
        rows = setting_rows(loaded, None)
        said = f"The contract stored for queue {loaded.queue} can't be read: `{remedies.QUEUE_APPLY}` writes it anew."
    if as_json:
        typer.echo(json.dumps([{name: getattr(row, name) for name in row.__slots__} for row in rows]))
    else:
        cells = [(row.name, row.default, row.bound, row.here, row.in_force) for row in rows]
        for line in table_lines(("setting", "default", "bound", "here", "in force"), cells, terminal_width()):
            typer.echo(line)
    typer.echo(said, err=True)


@app.command(epilog="Example: sluicegate queue serve --port 9110 --token-file token.txt")
def serve(
    settings: SettingsFile = None,
    host: Host = None,
    port: Port = None,
    redis_url: RedisUrl = None,
    queue: Queue = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="File with the bearer token that callers send.")
    ] = None,
) -> None:
    """Take jobs over HTTP (POST /v1/jobs, GET /v1/jobs/ID) until Ctrl-C or SIGTERM; Redis may come and go."""
    # The web framework is loaded late: no other command on a queue needs it.
    from sluicegate import http_server  # noqa: PLC0415 (as above)

    flags = {"api.host": host, "api.port": port, "api.token_file": token_file}
    api = http_server.QueueApi(settings_of(settings, redis_url, queue, flags))
    logs.configure()
    asyncio.run(api.serve())


@app.command(epilog="Example: sluicegate queue openapi > docs/reference/openapi.json")
def openapi() -> None:
    """Print the description of the HTTP API as OpenAPI."""
    from sluicegate.http_api import api_document  # noqa: PLC0415 (loaded late, as for `serve`)

    typer.echo(api_document(), nl=False)


app.command(epilog="Example: sluicegate queue doctor --json")(cli_doctor.doctor)
app.command("snapshot", epilog="Example: sluicegate queue snapshot before.jsonl.gz")(cli_snapshot.snapshot)
app.command("restore", epilog='Example: sluicegate queue restore before.jsonl.gz --as ann --reason "new host"')(
    cli_snapshot.restore_snapshot
)


def _stored_contract(settings: Settings, *, own_file: bool) -> tuple[str | None, str]:
    """Give the stored contract, None where it can't be had, and a sentence about it."""
    store = Store.of(settings)
    try:
        stored = store.settings()
    except StoreError as error:
        what = "does not answer" if isinstance(error, StoreUnavailable) else "refused"
        said = f"The contract in force is not known: {place(settings)} {what} ({error})."
        return None, f"{said}\n{LOGIN if isinstance(error, NoLogin) else ELSEWHERE}"
    finally:
        store.close()
    if "contract" not in stored:
        return None, f"No contract is in force: queue {settings.queue} is not open. `{remedies.QUEUE_INIT}` opens it."
    digest, actor, reason = (stored.get(name, "?") for name in ("digest", "actor", "reason"))
    applied = f"Contract {digest} is in force, applied by {actor} ({reason})"
    if not own_file:
        return stored["contract"], f"{applied}. No settings file was named: `here` is the drill's."
    if digest == settings.contract.digest():
        return stored["contract"], f"{applied}."
    return stored["contract"], f"{applied}; these settings differ. `{remedies.QUEUE_APPLY}` puts them into force."
