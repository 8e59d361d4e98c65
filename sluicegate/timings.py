"""How long does everything in the contract take? Every duration once, in the unit of its name (contract §3 to §7)."""

from __future__ import annotations

from sluicegate.section import Section, seconds


class Timings(Section):
    """Hold every duration of the contract; the drill's fast profile divides all but two by five."""

    # The controller and the gate.
    tick_s: float = seconds(0.5, "From one decision of the controller to the next; no profile makes it faster.")
    provider_window_s: float = seconds(30, "How far back the provider's two rates and the completions look.")
    controller_silent_s: float = seconds(15, "After so long without a decision of the controller, admission is closed.")
    controller_lease_s: float = seconds(5, "How long one of several controllers leads without renewing.")
    reject_dwell_s: float = seconds(10, "How long age and slack must be good before reject_new becomes admit.")
    reject_dwell_max_s: float = seconds(160, "Where the doubling of that dwell ends.")
    reject_return_s: float = seconds(60, "A reject_new that returns within it doubles the dwell.")
    second_drain_s: float = seconds(3600, "A drain so soon after a reopening pins the gate.")
    run_open_after_s: float = seconds(30, "A drain that no alert answered for so long: the controller opens the run.")
    limit_grace_s: float = seconds(10, "How far past its limit a run may be before that is a breach.")
    # A job and its calls.
    margin_s: float = seconds(2, "With less time left than this a job is not started; it expires.")
    call_timeout_max_s: float = seconds(10, "The longest timeout of a call to the provider.")
    call_timeout_min_s: float = seconds(1, "The shortest.")
    call_reserve_s: float = seconds(1, "What a call's timeout leaves of the job's remaining time.")
    backoff_first_s: float = seconds(2, "The wait before the first retry; each further one is twice as long, ± 20 %.")
    backoff_max_s: float = seconds(30, "Where that doubling ends.")
    # What a refused caller is told.
    overloaded_retry_s: float = seconds(30, "When to come back after `overloaded`.")
    class_limit_retry_s: float = seconds(15, "When to come back after `<cost_class>_limit`.")
    closed_retry_s: float = seconds(30, "When to come back while admission is closed.")
    # A run, step by step.
    worker_seen_s: float = seconds(10, "Workers seen within it must confirm a freeze.")
    freeze_timeout_s: float = seconds(60, "Time for the steps freeze and recover.")
    drain_timeout_s: float = seconds(60, "Time for the steps snapshot and drain.")
    drain_keep_slack_s: float = seconds(15, "A drain keeps jobs with this slack beside the time to green.")
    fix_timeout_s: float = seconds(3600, "Time for the step fix, and for a person's word in place of canaries.")
    fix_page_s: float = seconds(300, "How often a step that waits for a person pages.")
    canary_timeout_s: float = seconds(120, "Time for the canaries to become green.")
    canary_latency_floor_s: float = seconds(1, "A canary may always take so long; no profile makes it shorter.")
    burn_down_max_s: float = seconds(120, "Time for the kept backlog to burn down.")
    burn_down_window_s: float = seconds(30, "In each window of this length the backlog must get better.")
    gate_timeout_s: float = seconds(30, "Time for the run's gate to pass.")
    ramp_step_s: float = seconds(20, "How long each share of `ramp_percents` lasts.")
    hold_max_s: float = seconds(1800, "How long a person may hold a run; then it rolls back.")
    run_lease_s: float = seconds(10, "How long an executor owns a run without renewing; then another may go on.")
    run_cooldown_s: float = seconds(900, "From a run's end until an alert or a timer may open the next.")
    storm_window_s: float = seconds(300, "Within it `storm_queues` queues must ask for a run to trip the breaker.")
    episode_look_s: float = seconds(5, "How often an alert that has no run yet is looked at.")
    page_repeat_s: float = seconds(300, "How often a pinned, closed gate pages.")
    # What is kept.
    final_retention_s: float = seconds(86_400, "How long an ended job is kept; at least twice the longest deadline.")
    refusal_retention_s: float = seconds(3600, "How long a refusal is kept after the caller was to come back.")
    failed_retention_s: float = seconds(30 * 86_400, "How long the lists of expired and failed jobs are kept.")
    run_retention_s: float = seconds(90 * 86_400, "How long a run that has ended is kept, with journal and approvals.")
    episode_retention_s: float = seconds(7 * 86_400, "How long an alert is remembered after it was heard of last.")


def check_pairs(timings: Timings) -> None:
    """Raise ValueError where a least is above its most."""
    for least, most in (
        ("call_timeout_min_s", "call_timeout_max_s"),
        ("backoff_first_s", "backoff_max_s"),
        ("reject_dwell_s", "reject_dwell_max_s"),
        # Or admission would close between two looks of a controller that is well.
        ("tick_s", "controller_silent_s"),
    ):
        if getattr(timings, least) > getattr(timings, most):
            raise ValueError(f"{least} is {getattr(timings, least):g}, above {most} of {getattr(timings, most):g}")
