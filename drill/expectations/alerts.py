"""What the real Prometheus and the real Alertmanager must have done."""

from __future__ import annotations

from drill.controls import FiringSpan
from drill.verdict import Evidence, Expectation, Seen
from rules.alert import Severity, SluicegateAction
from rules.generate import catalogue
from sluicegate.job import JobState

# From a firing alert to its run: two notifications and an episode looked at on arrival; the margin is the machine's.
_RUN_WITHIN_S = 2.0


def _drain_alerts(evidence: Evidence) -> tuple[FiringSpan, ...]:
    names = {alert.name for alert in catalogue(evidence.settings) if alert.action is SluicegateAction.DRAIN}
    return tuple(span for span in evidence.firing if span.alert in names)


def parts_are_scraped() -> Expectation:
    """Look at Prometheus's own view of the parts that it scrapes."""

    def look(evidence: Evidence) -> Seen:
        down = [job for job, up in evidence.targets.items() if not up]
        said = ", ".join(f"{job} {'up' if up else 'down'}" for job, up in evidence.targets.items())
        return Seen(bool(evidence.targets) and not down, said or "nothing is scraped")

    return Expectation("parts are scraped", "the last scrape of each worked", look)


def a_drain_alert_fires() -> Expectation:
    """Look for an alert that asks for a drain among those that fired in Prometheus."""

    def look(evidence: Evidence) -> Seen:
        fired = ", ".join(dict.fromkeys(span.alert for span in evidence.firing)) or "none"
        return Seen(bool(_drain_alerts(evidence)), f"fired: {fired}")

    return Expectation("an alert fires", "one that asks for a drain, in the real Prometheus", look)


def alert_opens_the_run() -> Expectation:
    """Measure from the first firing alert that asks for a drain to the opening of the run."""

    def look(evidence: Evidence) -> Seen:
        fired = _drain_alerts(evidence)
        run = evidence.recovery
        if not fired or run is None:
            return Seen(ok=False, text="no run" if fired else "no alert fired")
        took_s = max(0, run.run.started_at_ms - fired[0].from_ms) / 1000
        bound_s = evidence.settings.contract.timings.episode_look_s + _RUN_WITHIN_S
        by_webhook = run.run.trigger == "webhook"
        return Seen(by_webhook and took_s <= bound_s, f"{took_s:.1f} s after {fired[0].alert}, by {run.run.trigger}")

    return Expectation("alert → run", "by Alertmanager's webhook, within episode_look_s + 2 s", look)


def a_page_leads(full_s: float) -> Expectation:
    """Measure from the first page to the first deadline of the shortest class that an expired job would have missed."""

    def look(evidence: Evidence) -> Seen:
        paging = {alert.name for alert in catalogue(evidence.settings) if alert.severity is Severity.PAGE}
        pages = [span for span in evidence.firing if span.alert in paging]
        missed = _first_missed_ms(evidence)
        if not pages:
            return Seen(ok=False, text="no page")
        if missed is None:
            return Seen(ok=True, text=f"{pages[0].alert}, and no deadline of the class was missed")
        lead_s = (missed - pages[0].from_ms) / 1000
        return Seen(lead_s >= evidence.profile.real_s(full_s), f"{pages[0].alert}, {lead_s:.1f} s before")

    return Expectation("page → first missed deadline", f"≥ {full_s:g} s before (full profile), shortest class", look)


def _first_missed_ms(evidence: Evidence) -> int | None:
    """Give the first deadline of a job that has expired; it may have been given up long before."""
    classes = evidence.settings.contract.classes
    shortest = min(classes, key=lambda name: classes[name].deadline_s)
    expired = {job.job_id for job in evidence.jobs if job.state == JobState.EXPIRED}
    deadlines = (
        one.at_ms + round(classes[shortest].deadline_s * 1000)
        for one in evidence.submissions
        if one.ask.job_class == shortest and one.decision.job_id in expired
    )
    return min(deadlines, default=None)


def none_fires_but(*names: str) -> Expectation:
    """Compare the alerts that fired with those that may."""

    def look(evidence: Evidence) -> Seen:
        fired = list(dict.fromkeys(span.alert for span in evidence.firing))
        return Seen(set(fired) <= set(names), ", ".join(fired) or "none")

    return Expectation("alerts that fired", f"none but {', '.join(names)}", look)


def repeated_posts_are_one(times: int) -> Expectation:
    """Look at what each delivery of one notification was answered: one opens the run, the others come to the same."""

    def look(evidence: Evidence) -> Seen:
        posts = evidence.timeline.posts
        ids = {post.run for post in posts}
        opened = sum(post.outcome == "moved" for post in posts)
        attached = sum(post.outcome == "attached" for post in posts)
        text = ", ".join(f"{post.outcome}, run {post.run or 'none'}" for post in posts) or "no answer"
        ok = len(posts) == times and len(ids) == 1 and "" not in ids and (opened, attached) == (1, times - 1)
        return Seen(ok, text)

    return Expectation("a repeated post is one run", f"{times} answers, one that opens it and one id", look)
