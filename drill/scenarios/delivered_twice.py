"""Every webhook comes twice, as webhooks do: each submission is one job, and the alert's two posts are one run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from drill.expectations import alerts, decisions, gate, jobs, load, runs
from drill.rig import POSTED, Rig
from drill.scenarios import faults, matrix
from drill.scenarios.conditions import answered, gate_reaches, run_ends, step_reached
from drill.scenarios.scenario import Phase, Scenario
from drill.timeline import Post
from drill.webhook import firing
from rules.generate import catalogue
from sluicegate.records import AlertName

_DELIVERIES = 2
_SHARE_THAT_FAILS = 0.6


def _send_twice(rig: Rig) -> None:
    rig.suspend_workers()
    for _ in range(_DELIVERIES):
        matrix.send_all(rig)


def _fail(rig: Rig) -> None:
    # Some succeed, so that there is something that could be done twice.
    rig.break_calls(503, _SHARE_THAT_FAILS)
    rig.resume_workers()


def _post_twice(rig: Rig) -> None:
    """Deliver one notification twice at the same moment, as two Alertmanagers of a pair do."""
    alerts_of = {alert.name: alert for alert in catalogue(rig.topology.settings)}
    body = firing(alerts_of[AlertName.PROVIDER_ERRORS_HIGH], datetime.now(UTC))
    deliver = rig.topology.automation.deliver
    with ThreadPoolExecutor(_DELIVERIES) as threads:
        answers = list(threads.map(lambda _: deliver(body), range(_DELIVERIES)))
    for runs_of in answers:
        for run in runs_of:
            rig.timeline.posts.append(Post(run["id"], run["state"], run["duplicate"]))
            rig.note(POSTED, f"Alertmanager's post: {run['state']}, run {run['id'] or 'none'}")


SCENARIO = Scenario(
    name="delivered-twice",
    summary="Each submission and the alert's post come twice: one id with `replayed`, and one run.",
    needs=replace(matrix.SMALL, api=True, fixed_by_hook=False),
    jobs=matrix.JOBS,
    ends_closed=True,
    phases=(
        matrix.started(),
        Phase(
            "submitted",
            "the workers stand still; every job is posted twice to the HTTP API",
            answered(_DELIVERIES * matrix.COUNT),
            within_s=20,
            act=_send_twice,
        ),
        Phase(
            "failing",
            "the workers go on, most calls are answered 503",
            gate_reaches(*faults.DRAINED),
            within_s=40,
            act=_fail,
        ),
        Phase(
            "posted",
            "the alert's notification is posted twice at the same moment",
            step_reached("fix", "started"),
            within_s=60,
            act=_post_twice,
        ),
        Phase(
            "aborted",
            "a person aborts the run: what it would recover is another scenario",
            run_ends("rolled_back"),
            within_s=30,
            act=lambda rig: rig.abort_run("one run is all that was asked for"),
        ),
    ),
    expectations=(
        decisions.repeats_are_replayed(_DELIVERIES),
        decisions.ids_stay_the_same(),
        alerts.repeated_posts_are_one(_DELIVERIES),
        runs.is_the_only_one(),
        runs.is_opened_by("webhook"),
        gate.went(faults.DRAINED),
        gate.ends("drain", pin="rolled_back", rollback_reason="manual_operator_hold"),
        load.every_submission_is_answered(),
        *jobs.common(),
    ),
)
