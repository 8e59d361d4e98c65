"""Speak to the drill's running parts over their own HTTP: switch faults, approve a step, read alerts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from drill.load import Ask
from drill.profile import Slowness
from sluicegate.admission import Decision
from sluicegate.errors import SluicegateError

PROVIDER_PROXY = "provider"
LATENCY = "slow"
STATUS = "errors"
LOST_ANSWERS = "lost-answers"
_WITHIN_S = 2.0


class PartSilent(SluicegateError):
    """Say that a part of the drill did not do what the drill asked of it."""


@contextmanager
def _asking(part: str) -> Iterator[None]:
    try:
        yield
    except httpx.HTTPError as error:
        raise PartSilent(f"The drill's {part} did not answer as it should: {error}.") from error


class HttpClient:
    """Call one part on loopback; a proxy that the environment names is for the outside world."""

    def __init__(self, part: str, url: str, within_s: float = _WITHIN_S) -> None:
        self._part = part
        self._client = httpx.Client(base_url=url, timeout=within_s, trust_env=False)

    def get(self, path: str, **parameters: str | float) -> Any:  # noqa: ANN401 (JSON; each caller parses its own)
        """Return the JSON body; raises PartSilent on anything but 2xx."""
        with _asking(self._part):
            return self._client.get(path, params=parameters).raise_for_status().json()

    def send(self, method: str, path: str, body: Mapping[str, object] | None = None) -> None:
        """Send JSON; raises PartSilent on anything but 2xx."""
        with _asking(self._part):
            self._client.request(method, path, json=body).raise_for_status()

    def post(self, path: str, body: Mapping[str, object], **headers: str) -> Any:  # noqa: ANN401 (as above)
        """Post JSON and return the JSON answer; raises PartSilent on anything but 2xx."""
        with _asking(self._part):
            return self._client.post(path, json=body, headers=headers).raise_for_status().json()

    def close(self) -> None:
        """Close the connections; safe twice."""
        self._client.close()


class FaultControl:
    """Switch faults on and off between the workers and the provider, in Toxiproxy's words."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = HttpClient("fault proxy", url)

    @property
    def reset_url(self) -> str:
        """Return what a run's hook posts to when it fixes the path."""
        return f"{self.url}/reset"

    def place_before(self, upstream: str) -> str:
        """Put a proxy before `host:port` and return its own `host:port`."""
        self._http.send(
            "POST", "/proxies", {"name": PROVIDER_PROXY, "listen": "127.0.0.1:0", "upstream": upstream, "enabled": True}
        )
        return str(self._http.get(f"/proxies/{PROVIDER_PROXY}")["listen"])

    def slow_down(self, slowness: Slowness) -> None:
        """Delay every answer."""
        attributes = {"latency": slowness.latency_ms, "jitter": slowness.jitter_ms}
        self._add(LATENCY, "latency", attributes)

    def break_calls(self, status: int, probability: float, retry_after_s: int | None = None) -> None:
        """Answer this share of the calls with an error status, and with a Retry-After where one is given."""
        attributes: dict[str, object] = {"status": status, "probability": probability}
        if retry_after_s is not None:
            attributes["retry_after_s"] = retry_after_s
        self._add(STATUS, "status", attributes)

    def lose_answers(self, probability: float) -> None:
        """Reset this share of the connections after the work was done: the answer is lost."""
        self._add(LOST_ANSWERS, "reset_peer", {"timeout": 0}, probability)

    def heal(self) -> None:
        """Take every fault away."""
        self._http.send("POST", "/reset")

    def names(self) -> tuple[str, ...]:
        """Return the names of the faults that are on."""
        return tuple(str(toxic["name"]) for toxic in self._http.get(f"/proxies/{PROVIDER_PROXY}/toxics"))

    def close(self) -> None:
        """Close the connections; safe twice."""
        self._http.close()

    def _add(self, name: str, kind: str, attributes: Mapping[str, object], toxicity: float = 1.0) -> None:
        body = {"name": name, "type": kind, "stream": "downstream", "toxicity": toxicity, "attributes": attributes}
        self._http.send("POST", f"/proxies/{PROVIDER_PROXY}/toxics", body)


class ApiControl:
    """Submit jobs over HTTP, as a webhook's sender does."""

    def __init__(self, url: str) -> None:
        self._http = HttpClient("HTTP API", url)

    def submit(self, ask: Ask) -> Decision:
        """Submit one job under its key; raises PartSilent where it is not accepted."""
        body = {"class": ask.job_class, "payload": json.loads(ask.payload)}
        answer = self._http.post("/v1/jobs", body, **{"Idempotency-Key": f'"{ask.key}"'})
        return Decision(answer["accepted"], answer["job_id"], answer["reason"], None, answer["replayed"])

    def close(self) -> None:
        """Close the connections; safe twice."""
        self._http.close()


class AutomationControl:
    """Be the person who answers a run, and Alertmanager, through the automation service's API."""

    def __init__(self, url: str) -> None:
        self._http = HttpClient("automation service", url)

    def approve(self, run: str, step: str, *, actor: str, reason: str) -> None:
        """Say that a step of a run may go on."""
        self._http.send("POST", f"/v1/runs/{run}/approve", {"actor": actor, "reason": reason, "step": step})

    def abort(self, run: str, *, actor: str, reason: str) -> None:
        """End a run: closed and pinned."""
        self._http.send("POST", f"/v1/runs/{run}/abort", {"actor": actor, "reason": reason})

    def deliver(self, notification: Mapping[str, object]) -> list[Mapping[str, Any]]:
        """Post what Alertmanager posts; return the runs it came to, each with id, state and duplicate."""
        return list(self._http.post("/webhooks/alertmanager", notification)["runs"])

    def close(self) -> None:
        """Close the connections; safe twice."""
        self._http.close()


@dataclass(frozen=True, slots=True)
class FiringSpan:
    """Hold from when to when an alert fired, in ms of Unix time, as Prometheus saw it."""

    alert: str
    from_ms: int
    to_ms: int


class PrometheusControl:
    """Read what the real Prometheus makes of the rules."""

    def __init__(self, url: str) -> None:
        self._http = HttpClient("Prometheus", url)

    def firing(self) -> tuple[str, ...]:
        """Return the names of the alerts that fire now, in alphabetical order."""
        alerts = self._http.get("/api/v1/alerts")["data"]["alerts"]
        return tuple(sorted({alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}))

    def healthy_targets(self) -> dict[str, bool]:
        """Return scrape job → whether its last scrape worked."""
        targets = self._http.get("/api/v1/targets", state="active")["data"]["activeTargets"]
        return {target["labels"]["job"]: target["health"] == "up" for target in targets}

    def rule_groups(self) -> tuple[str, ...]:
        """Return the names of the rule groups that are loaded."""
        return tuple(str(group["name"]) for group in self._http.get("/api/v1/rules")["data"]["groups"])

    def firing_spans(self, from_s: float) -> tuple[FiringSpan, ...]:
        """Return when each alert fired since `from_s` (Unix time), oldest first.

        A range of raw samples, not a series of steps: each has the time of the evaluation that made it.
        """
        now_s = time.time()
        query = f'ALERTS{{alertstate="firing"}}[{max(1, round((now_s - from_s) * 1000))}ms]'
        answer = self._http.get("/api/v1/query", query=query, time=now_s)
        spans = [
            FiringSpan(series["metric"]["alertname"], *_ends(series["values"])) for series in answer["data"]["result"]
        ]
        return tuple(sorted(spans, key=lambda span: (span.from_ms, span.alert)))

    def close(self) -> None:
        """Close the connections; safe twice."""
        self._http.close()


def _ends(values: list[list[Any]]) -> tuple[int, int]:
    return round(values[0][0] * 1000), round(values[-1][0] * 1000)
