"""Parse `sluicegate queue doctor` and wire it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

import typer

from sluicegate import functions
from sluicegate.console import AsJson, Queue, RedisUrl, SettingsFile, opened, settings_of
from sluicegate.doctor import Seen, examine
from sluicegate.errors import StoreRejected
from sluicegate.replies import StrangeKeys
from sluicegate.server_findings import CONFIG_NAMES, Finding, Level, Loss, losses
from sluicegate.settings import Settings
from sluicegate.store import Store
from sluicegate.tables import table_lines, terminal_width


def doctor(
    as_json: AsJson = False, settings: SettingsFile = None, redis_url: RedisUrl = None, queue: Queue = None
) -> None:
    """Say what the server can lose of what the queue decides; exit 1 if something must be fixed."""
    loaded = settings_of(settings, redis_url, queue)
    # A reader loads nothing: what is found is what was there, on a replica too.
    with opened(loaded, read_only=True) as store:
        seen = look(store, loaded, own_file=settings is not None)
    findings, lost = examine(seen), losses(seen)
    if as_json:
        body = {"findings": [asdict(finding) for finding in findings], "losses": [asdict(loss) for loss in lost]}
        typer.echo(json.dumps(body))
    else:
        _print(findings, lost)
    if any(finding.level is Level.FIX for finding in findings):
        raise typer.Exit(1)


def look(store: Store, settings: Settings, *, own_file: bool) -> Seen:
    """Ask the server for all that it shows; raises StoreError where not even a command of the queue answers.

    Without a settings file of one's own (`own_file`) there is no contract to compare the stored one with.
    """
    began = time.time()
    server_ms = store.server_time_ms()
    ended = time.time()
    gate, unread, lived = _gate(store)
    return Seen(
        queue=store.queue,
        info=store.server_info(),
        config=store.server_config(CONFIG_NAMES),
        libraries=store.server_libraries(),
        loaded=store.loaded_library(),
        library_by_primary=store.library_by_primary() if settings.redis.cluster_nodes else {},
        skew_s=(began + ended) / 2 - server_ms / 1000,
        rtt_s=(ended - began) / 2,
        gate=gate,
        unread=unread,
        lived=lived,
        strange=_strange(store),
        stored=store.settings(),
        own_digest=settings.contract.digest() if own_file else None,
        own_library=functions.LIBRARY,
        own_code=functions.digest_of(functions.library()),
        resolver_url=settings.reconcile.http_url is not None,
    )


def _gate(store: Store) -> tuple[str, str, bool]:
    """Give the gate's state, why the queue's figures can't be read (or ''), and whether it has counted anything."""
    try:
        telemetry = store.observe()
    except StoreRejected as error:
        return "", str(error), True
    return telemetry.gate.drain_state, "", bool(telemetry.counters)


def _strange(store: Store) -> StrangeKeys | None:
    try:
        return store.strange_keys()
    except StoreRejected:
        return None  # SCAN or TYPE is not allowed to this user


def _print(findings: tuple[Finding, ...], lost: tuple[Loss, ...]) -> None:
    for finding in findings:
        typer.echo(f"{finding.level.value:<6} {finding.name}: {finding.said}")
        if finding.hint:
            typer.echo(f"{'':<7}{finding.hint}")
    for line in table_lines(
        ("when", "what can be lost"), [(loss.happens, loss.lost) for loss in lost], terminal_width()
    ):
        typer.echo(line)
