"""Parse `sluicegate queue …` and wire it."""

from __future__ import annotations

import typer

from sluicegate.console import Actor, Queue, RedisUrl, SettingsFile, Why, fail, opened, person, settings_of

app = typer.Typer(
    help="Open a queue, apply its contract, submit to it and look into it.",
    epilog='Example: sluicegate queue init --as ann --reason "first queue"',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def group() -> None:
    """Open a queue, apply its contract, submit to it and look into it."""


@app.command(epilog='Example: sluicegate queue init --as ann --reason "first queue" --settings sluicegate.yaml')
def init(
    actor: Actor, reason: Why, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Open a new queue with the settings' contract; refused where anything of a queue exists."""
    who = person(actor, reason)
    loaded = settings_of(settings, redis_url, queue)
    contract = loaded.contract
    with opened(loaded) as store:
        answer = store.init_queue(contract.for_redis(), contract.digest(), who.name, who.reason)
    if answer.answer != "moved":
        raise fail(
            f"Queue {loaded.queue} exists already: the key {answer.why} is there.",
            "`sluicegate queue apply` changes its contract, `sluicegate gate open` its gate.",
        )
    typer.echo(f"Queue {loaded.queue} is open, with contract {contract.digest()}.")
