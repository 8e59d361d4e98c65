"""What does each service and each generated file need to know beside the contract? A section each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from sluicegate.notice import NoticeKind
from sluicegate.section import NAME, Section, seconds
from sluicegate.web.roles import Role


class WorkerSettings(Section):
    """Set how one worker process pulls."""

    max_inflight: int = Field(default=2, ge=1, le=10_000, description="Jobs at once in one worker.")
    sweep_ms: int = Field(
        default=250, ge=10, le=3_600_000, description="How often a worker looks for overdue jobs and lost leases."
    )
    idle_wait_s: float = seconds(0.2, "How long an idle worker waits for the wake key at most.")


class ListenSettings(Section):
    """Say where a service listens; port 0 takes a free one."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=0, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")


class ExporterSettings(ListenSettings):
    """Set the exporter: where it listens and how long one scrape may take."""

    port: int = Field(default=9108, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    scrape_budget_s: float = seconds(2.0, "A scrape is answered within it, with or without Redis.")
    web_config_file: Path | None = Field(
        default=None,
        description="TLS, client certificates and passwords of its port, in the exporter toolkit's format.",
    )


class ApiSettings(ListenSettings):
    """Set `queue serve`: where it listens, the file with its bearer token, and how it shares calls and bounds waits."""

    port: int = Field(default=9110, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    token_file: Path | None = Field(default=None, description="File with the bearer token that callers must send.")
    max_batch: int = Field(default=25, ge=1, le=100, description="Submissions that share one call to Redis at most.")
    in_flight: int = Field(
        default=2,
        ge=1,
        le=64,
        description="Calls to Redis that are on their way at once; one where they go over threads, as in a cluster.",
    )
    max_waiting: int = Field(
        default=1000, ge=1, le=1_000_000, description="Submissions that wait for such a call; more are answered 503."
    )
    body_within_s: float = seconds(10, "Time for a request's body to arrive.")
    answer_within_s: float = seconds(5, "Time for Redis to answer before the caller is told to come back.")


class ReconcileSettings(Section):
    """Set how unknown jobs are settled without a person: by the ledger, and by asking a URL about the key.

    `http_url` names the key as {key}. Only jobs unknown for `after_s` are asked about: until then their worker may
    still report, and a call that is under way may still do what it was made for.
    """

    automatic: bool = Field(default=True, description="Whether the automation service settles unknown jobs by itself.")
    every_s: float = seconds(5, "How often it goes through the unknown jobs.")
    after_s: float = seconds(30, "How long a job must be unknown before anyone is asked about it.")
    http_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^{}]*\{key\}[^{}]*$",
        description="Address that tells what became of an idempotency key, {key} in it.",
    )
    http_timeout_s: float = Field(default=2, gt=0, le=60, description="Time for that address to answer.")
    ask_again_s: float = seconds(30, "After an unclear answer, the wait until the next question; it doubles.")
    ask_again_max_s: float = seconds(600, "Where that doubling ends.")
    asks_a_turn: int = Field(default=10, ge=1, le=100, description="Jobs asked about at once.")


# What may follow `automation.urls.` and `automation.commands.`: a word that a runbook can write.
URL_NAME = r"[a-z][a-z0-9_]{0,39}"
_ENVIRONMENT_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"


class CommandSettings(Section):
    """Allow one program to the runbooks' step `command`; it is started without a shell, and nothing is added to it."""

    argv: tuple[str, ...] = Field(min_length=1, description="The program and its arguments, as they are.")
    timeout_s: float = Field(
        default=60, gt=0, le=3600, description="After so long it is killed, with whatever it started."
    )
    environment: tuple[Annotated[str, Field(pattern=_ENVIRONMENT_NAME)], ...] = Field(
        default=(), description="Variables of the service that it gets; of all others it gets none but PATH and LANG."
    )


class FixSettings(Section):
    """Say how a run's `fix` step is done: a hook to call, else a person approves."""

    hook_url: str | None = Field(default=None, description="Address that removes the fault when it is called.")
    hook_method: str = Field(default="POST", description="HTTP method of that call.")
    probe_url: str | None = Field(default=None, description="Address that answers 200 once the fault is gone.")


class ReceiverKind(StrEnum):
    """Name how a receiver of notices is talked to."""

    SLACK = "slack"  # a Slack-compatible incoming webhook
    PAGERDUTY = "pagerduty"  # the Events API v2
    GITHUB = "github"  # an issue a run, a comment a notice
    WEBHOOK = "webhook"  # JSON to any address
    ALERTMANAGER = "alertmanager"  # not told anything: a run's silences end with the run


_ADDRESSED = (ReceiverKind.SLACK, ReceiverKind.WEBHOOK, ReceiverKind.ALERTMANAGER)


class ReceiverSettings(Section):
    """Say who is told of what; secrets are in files, which are read anew for each notice."""

    kind: ReceiverKind = Field(description="How it is talked to.")
    url: str | None = Field(
        default=None, pattern=r"^https?://", description="Its address; pagerduty and github have one of their own."
    )
    url_file: Path | None = Field(default=None, description="File with that address instead, where it is a secret.")
    token_file: Path | None = Field(
        default=None, description="File with the token that it asks for; for pagerduty the routing key."
    )
    repo: str | None = Field(default=None, pattern=r"^[\w.-]+/[\w.-]+$", description="For github: owner/name.")
    tells: tuple[NoticeKind, ...] = Field(default=tuple(NoticeKind), description="What it is told of.")

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.url is not None and self.url_file is not None:
            raise ValueError("url and url_file are both set")
        addressed = self.url is not None or self.url_file is not None
        if self.kind in _ADDRESSED and not addressed:
            raise ValueError(f"a receiver of kind {self.kind} needs url or url_file")
        if self.kind in (ReceiverKind.PAGERDUTY, ReceiverKind.GITHUB) and self.token_file is None:
            raise ValueError(f"a receiver of kind {self.kind} needs token_file")
        if (self.kind is ReceiverKind.GITHUB) != (self.repo is not None):
            raise ValueError("repo belongs to a receiver of kind github, and it needs one")
        return self


class WeakServer(StrEnum):
    """Name what becomes of runs on a server that keeps less than a recovery leans on; named persons are never bound."""

    WARN = "warn"  # they are opened, and it is said at the start and counted
    REFUSE = "refuse"  # none is opened that no named person asked for


class PageSettings(Section):
    """Set the page of the automation service: how often it reads the queue, how far back it plots, who may watch."""

    read_every_s: float = Field(
        default=0.5, ge=0.1, le=10, description="How often it reads the queue, for all who watch."
    )
    plot_s: float = Field(default=600, ge=10, le=86_400, description="How far back its plots go; kept in memory.")
    watchers: int = Field(default=100, ge=1, le=10_000, description="Live pages at once; more are answered 503.")


class AutomationSettings(ListenSettings):
    """Set the automation service: where it listens, who may call it, and how the path is fixed."""

    port: int = Field(default=9109, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    token: str | None = Field(default=None, description="Bearer token that callers and Alertmanager must send.")
    token_file: Path | None = Field(
        default=None,
        description="File with that token instead, or with two, a line each, while one replaces the other.",
    )
    web_config_file: Path | None = Field(
        default=None,
        description="TLS, client certificates and passwords of its port, in the exporter toolkit's format.",
    )
    grafana_secret_file: Path | None = Field(
        default=None, description="File with the secret, or two, by which Grafana signs what it posts."
    )
    weak_server: WeakServer = Field(
        default=WeakServer.WARN,
        description="On a server that keeps no file, or evicts: open runs all the same (warn), or by name (refuse).",
    )
    roles: dict[str, Role] = Field(
        default_factory=dict,
        description="Role of each name in basic_auth_users: notify, view, operate or approve. Once any is set, a name "
        "without one is notify; without this, all are approve.",
    )
    token_role: Role = Field(default=Role.APPROVE, description="Role of who shows the token.")
    page: PageSettings = PageSettings()
    fix: FixSettings = FixSettings()
    runbook_dir: Path | None = Field(
        default=None, description="Folder of runbooks of your own; one of a shipped one's name takes its place."
    )
    rollback_hook_url: str | None = Field(
        default=None, description="Address that is called after a rollback has closed the gate, to recreate workers."
    )
    urls: Mapping[Annotated[str, Field(pattern=f"^{URL_NAME}$")], Annotated[str, Field(pattern=r"^https?://")]] = Field(
        default={}, description="Addresses that runbooks name as `automation.urls.NAME`."
    )
    commands: Mapping[Annotated[str, Field(pattern=f"^{URL_NAME}$")], CommandSettings] = Field(
        default={}, description="Programs that runbooks may start, by name."
    )
    prometheus_url: str | None = Field(
        default=None, pattern=r"^https?://", description="Prometheus that runbooks' PromQL gates are asked of."
    )
    alertmanager_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="Alertmanager in which `automation run --silence` makes silences.",
    )
    receivers: dict[str, ReceiverSettings] = Field(default={}, description="Who is told of runs and pins, by name.")
    snapshot_dir: Path = Field(default=Path("snapshots"), description="Folder that gets a file for every run.")

    @model_validator(mode="after")
    def _check_token(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("token and token_file are both set; token_file alone keeps it out of the settings")
        return self

    @model_validator(mode="after")
    def _check_receivers(self) -> Self:
        for name in self.receivers:
            if not re.fullmatch(NAME, name):
                raise ValueError(f"receiver {name!r} must match {NAME}")
        return self

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        if self.roles and self.web_config_file is None:
            raise ValueError("roles are set and no web_config_file: without passwords nobody has a name")
        return self


# What begins with {{ would be a template of Prometheus' to it.
_ADDRESS = r"^[a-z]+://[^\s{}]+$"


class MonitoringSettings(Section):
    """Hold the timings of Prometheus and Alertmanager that the generated files assume."""

    scrape_interval_s: float = seconds(2, "How often Prometheus scrapes the exporter.")
    evaluation_interval_s: float = seconds(2, "How often Prometheus evaluates the rules.")
    alert_for_s: float = Field(default=4, ge=0, description="How long a condition must hold before its alert fires.")
    keep_firing_for_s: float = Field(default=30, ge=0, description="How long an alert goes on after its condition.")
    group_wait_s: float = Field(default=0, ge=0, description="How long Alertmanager waits for more of a new group.")
    group_interval_s: float = seconds(10, "How long Alertmanager waits before it tells of changes in a group.")
    repeat_interval_s: float = seconds(300, "How often Alertmanager repeats what goes on firing.")
    webhook_url: str = Field(
        default="http://127.0.0.1:9109/webhooks/alertmanager",
        pattern=r"^https?://\S+$",
        description="Where Alertmanager posts what asks for a run.",
    )
    runbook_base_url: str = Field(
        default="https://runbooks.example/sluicegate",
        pattern=_ADDRESS,
        description="Where the alerts' pages can be read.",
    )
    dashboard_base_url: str = Field(
        default="https://grafana.example",
        pattern=_ADDRESS,
        description="Where the generated dashboards can be seen.",
    )
    exporter_job: str = Field(default="sluicegate", description="Prometheus' job name of the exporter.")
    automation_job: str = Field(
        default="sluicegate-automation", description="Prometheus' job name of the automation service."
    )
    deadline_objective: float = Field(
        default=0.99, ge=0.95, lt=1, description="Share of deadlines to be met; what is left is the budget of misses."
    )
    budget_min_misses: int = Field(
        default=5, ge=1, description="With fewer misses in its long window no budget alert fires."
    )
