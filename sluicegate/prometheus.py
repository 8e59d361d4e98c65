"""What has a Prometheus recorded? The one way to ask its HTTP API, with every failure as one sentence.

prometheus-api-client asks; what it leaves open is settled here. By itself it tries three times, rounds instants to
whole seconds, takes part of an answer for all of it, and lets a bad body end in a KeyError: so no call is repeated
here, instants are handed over in milliseconds, and every answer is looked at before the library takes it apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from urllib3.util.retry import Retry

from sluicegate.errors import PrometheusFailed
from sluicegate.http_address import place

# Prometheus answers at most 11,000 steps at once.
MOST_STEPS = 10_000
WITHIN_S = 60.0
_LONGEST_SAID = 300
# Newer servers warn of what an expression looks like; the figures are whole all the same.
_ABOUT_THE_EXPRESSION = "PromQL "


@dataclass(frozen=True, slots=True)
class Series:
    """Hold one series of an answer: its labels, its name included, and its samples as (Unix ms, value)."""

    labels: Mapping[str, str]
    samples: tuple[tuple[int, float], ...]


class Prometheus:
    """Ask one Prometheus; not for several threads at once.

    Every question raises PrometheusFailed where there is no whole answer within `within_s` seconds of silence.
    """

    def __init__(self, url: str, *, token: str | None = None, within_s: float = WITHIN_S) -> None:
        self._place = place(url, "http://127.0.0.1:9090")
        session = requests.Session()
        # What the machine is set up with (proxies, passwords of a netrc) is for other programs.
        session.trust_env = False
        # A redirect would take the token to whoever it names.
        session.max_redirects = 0
        session.hooks["response"].append(self._look)
        self._api = PrometheusConnect(
            url.rstrip("/"),
            headers={"Authorization": f"Bearer {token}"} if token else None,
            session=session,
            retry=Retry(0, redirect=False, status=0, other=0),
            timeout=within_s,
        )
        self._within_s = within_s

    def close(self) -> None:
        """Close the connection; safe twice."""
        self._api.close()

    def at(self, query: str, at_ms: int) -> tuple[Series, ...]:
        """Give the value of each series of an expression at one instant."""
        with self._asking(query):
            found = self._api.custom_query(query, params={"time": _seconds(at_ms), **self._patience})
            return tuple(Series(one["metric"], (_sample(one["value"]),)) for one in found)

    def samples(self, selector: str, from_ms: int, to_ms: int) -> tuple[Series, ...]:
        """Give the very samples that were recorded after `from_ms` and up to `to_ms`, at their own times."""
        if to_ms <= from_ms:
            return ()
        query = f"{selector}[{to_ms - from_ms}ms]"
        with self._asking(query):
            found = self._api.custom_query(query, params={"time": _seconds(to_ms), **self._patience})
            # Prometheus 2 takes both ends in, Prometheus 3 leaves the first one out.
            return tuple(_series(one, later_than_ms=from_ms) for one in found)

    def over(self, query: str, from_ms: int, to_ms: int, step_ms: int) -> tuple[Series, ...]:
        """Give an expression's series at every step from `from_ms` to `to_ms`, however many steps these are."""
        found: dict[tuple[tuple[str, str], ...], list[tuple[int, float]]] = {}
        for begins_ms in range(from_ms, to_ms + 1, MOST_STEPS * step_ms):
            ends_ms = min(to_ms, begins_ms + (MOST_STEPS - 1) * step_ms)
            for one in self._range(query, begins_ms, ends_ms, step_ms):
                found.setdefault(tuple(sorted(one.labels.items())), []).extend(one.samples)
        return tuple(Series(dict(labels), tuple(samples)) for labels, samples in found.items())

    def _range(self, query: str, from_ms: int, to_ms: int, step_ms: int) -> Iterator[Series]:
        bounds = {"start": _seconds(from_ms), "end": _seconds(to_ms)}
        with self._asking(query):
            # The library rounds its own two instants to seconds; these parameters take their place.
            found = self._api.custom_query_range(
                query, _datetime(from_ms), _datetime(to_ms), _seconds(step_ms), params={**bounds, **self._patience}
            )
            yield from [_series(one) for one in found]

    @property
    def _patience(self) -> dict[str, str]:
        return {"timeout": f"{self._within_s:g}s"}

    @contextmanager
    def _asking(self, query: str) -> Iterator[None]:
        """Turn every way in which an answer can fail into one sentence."""
        asked = f"asked for `{_short(query)}`"
        try:
            yield
        except PrometheusFailed as error:
            raise PrometheusFailed(f"Prometheus at {self._place}, {asked}, {error}") from error
        except requests.exceptions.Timeout as error:
            said = f"Prometheus at {self._place} has not answered within {self._within_s:g} s, {asked}."
            raise PrometheusFailed(said) from error
        except requests.exceptions.TooManyRedirects as error:
            raise PrometheusFailed(f"Prometheus at {self._place} sends to another address; name that one.") from error
        except requests.exceptions.ChunkedEncodingError as error:
            raise PrometheusFailed(f"Prometheus at {self._place} broke its answer off, {asked}.") from error
        except requests.exceptions.RequestException as error:
            raise PrometheusFailed(f"Prometheus at {self._place} can't be reached: {_reason(error)}.") from error
        except (PrometheusApiClientException, KeyError, TypeError, ValueError, IndexError) as error:
            said = f"Prometheus at {self._place} gave an answer that makes no sense, {asked}."
            raise PrometheusFailed(said) from error

    def _look(self, response: requests.Response, *_: object, **__: object) -> None:
        """Look at an answer before the library does; raises PrometheusFailed where it is an error or not whole."""
        if response.is_redirect:
            return
        try:
            body = response.json()
        except requests.exceptions.JSONDecodeError as error:
            raise PrometheusFailed(f"answered {response.status_code} with what is no JSON.") from error
        if not isinstance(body, dict):
            raise PrometheusFailed(f"answered {response.status_code} with what is no answer of its API.")
        if response.status_code != requests.codes.ok or body.get("status") != "success":
            said = _short(str(body.get("error", "no reason given")))
            raise PrometheusFailed(f"answered {response.status_code}: {said}")
        partial = [one for one in body.get("warnings") or () if not str(one).startswith(_ABOUT_THE_EXPRESSION)]
        if partial:
            raise PrometheusFailed(f"has only part of the answer: {_short(str(partial[0]))}")


def _series(one: Mapping[str, Any], later_than_ms: int | None = None) -> Series:
    samples = tuple(_sample(pair) for pair in one["values"])
    if later_than_ms is not None:
        samples = tuple(sample for sample in samples if sample[0] > later_than_ms)
    return Series(one["metric"], samples)


def _sample(pair: Sequence[Any]) -> tuple[int, float]:
    at_s, value = pair
    return round(float(at_s) * 1000), float(value)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}"


def _datetime(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_SAID else f"{line[:_LONGEST_SAID]}…"


def _reason(error: Exception) -> str:
    """Give the innermost reason of a connection that failed, without the address."""
    inner: BaseException = error
    while (cause := inner.__cause__ or inner.__context__) is not None:
        inner = cause
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return type(inner).__name__
