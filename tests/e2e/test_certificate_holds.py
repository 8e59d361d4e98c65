"""No page comes later than its certificate says: twenty signals through a real Prometheus and a real Alertmanager."""

from __future__ import annotations

import time
from functools import partial
from itertools import cycle, islice

import pytest

from rules.certificate import Certificate, certify
from rules.generate import render_alertmanager
from rules.routing import PAGES_RECEIVER
from rules.scope import Scope
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.settings import Settings, default_settings
from tests.monitored import Queue, asked, monitored, served_pages, wait

SIGNALS, TOGETHER = 20, 4
# Of the class of 60 s, three quarters at most by the certificate, and a third as measured.
CERTIFIED_WITHIN_S, MEASURED_WITHIN_S = 45.0, 20.0
STARTS_WITHIN_S, QUIET_WITHIN_S = 60.0, 120.0


def of_queue(settings: Settings, number: int, url: str) -> Settings:
    told = settings.monitoring.model_copy(update={"webhook_url": url})
    return settings.model_copy(update={"queue": f"queue-{number}", "monitoring": told})


def at_once(certificate: Certificate) -> bool:
    """Say whether a situation of this moment alone makes the page: no trend, and nothing that it grows out of."""
    alert = certificate.alert
    return not (alert.waits_by_design or alert.looks_back_s or next(case for case in alert.cases if case.fires).before)


def with_pages(config: str, url: str) -> str:
    """Fill the placeholder in for those who are paged."""
    name = f'  - name: "{PAGES_RECEIVER}"\n'
    assert name in config
    return config.replace(name, f'{name}    webhook_configs:\n      - url: "{url}"\n')


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_signals_four_at_a_time_are_all_told_within_their_certificates() -> None:
    base = default_settings()
    chosen = list(islice(cycle(one for one in certify(base) if at_once(one)), SIGNALS))
    queues = [Queue(Scope(of_queue(base, number, ""))) for number in range(SIGNALS)]
    took: list[tuple[float, Certificate]] = []
    with served_pages(*queues) as address:
        url = f"http://{address}/webhooks/alertmanager"
        settings = [of_queue(base, number, url) for number in range(SIGNALS)]
        with monitored(settings, address, with_pages(render_alertmanager(settings[0]), url)) as prometheus:
            healthy = f"count({records.SNAPSHOT.name} offset 10s) == {SIGNALS}"
            wait(lambda: asked(prometheus, healthy), STARTS_WITHIN_S, "readings of every queue for ten seconds")
            # Before its first scrape a Prometheus rightly says that figures are absent.
            quiet = f'absent(ALERTS{{alertname!="{AlertName.WATCHDOG}"}})'
            wait(lambda: asked(prometheus, quiet), QUIET_WITHIN_S, "no alert of the start any more")
            for queue in queues:
                queue.heard_s.clear()

            for start in range(0, SIGNALS, TOGETHER):
                together = list(zip(queues, chosen, strict=True))[start : start + TOGETHER]
                began_s = time.monotonic()
                for queue, certificate in together:
                    assert certificate.alert.name not in queue.heard_s
                    queue.situation = next(case for case in certificate.alert.cases if case.fires).situation
                for queue, certificate in together:
                    heard, name = queue.heard_s, certificate.alert.name
                    wait(partial(heard.get, name), certificate.worst_s * 2, f"the page {name}")
                    took.append((heard[name] - began_s, certificate))

    for took_s, certificate in took:
        print(f"{certificate.alert.name}: {took_s:.1f} s, certified {certificate.worst_s:g} s")
    assert [certificate.alert.name for took_s, certificate in took if took_s > certificate.worst_s] == []
    assert max(certificate.worst_s for _, certificate in took) <= CERTIFIED_WITHIN_S
    assert max(took_s for took_s, _ in took) <= MEASURED_WITHIN_S
    assert len(took) == SIGNALS
