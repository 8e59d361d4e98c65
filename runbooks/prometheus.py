"""Ask a Prometheus one question: one answer in time, once, or the reason why there is none."""

from __future__ import annotations

import math
from typing import Any

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from urllib3.util.retry import Retry

from runbooks.evidence import Sample

ANSWER_WITHIN_S = 5.0
_WHY_MOST = 160


def ask(url: str, query: str, within_s: float = ANSWER_WITHIN_S) -> Sample:
    """Give the one value that the query has now; blocks for at most about `within_s`, and never tries again.

    No answer, an error, NaN, no series and more than one say nothing: neither a pass nor a fail.
    """
    with requests.Session() as session:
        # A proxy named by the environment would answer in Prometheus' place.
        session.trust_env = False
        session.max_redirects = 0
        client = PrometheusConnect(url=url, session=session, timeout=within_s, retry=Retry(0, redirect=False))
        try:
            result: Any = client.custom_query(query)
        except requests.Timeout:
            return Sample(None, f"no answer within {within_s:g} s")
        except requests.RequestException as error:
            return Sample(None, f"no answer: {type(error).__name__}")
        except (PrometheusApiClientException, KeyError, TypeError, ValueError) as error:
            return Sample(None, f"no answer: {str(error)[:_WHY_MOST]}")
    return sample_of(result)


def sample_of(result: object) -> Sample:
    """Read what a query was answered with: a vector of one series, or a scalar. Pure."""
    if not isinstance(result, list) or not result:
        return Sample(None, "no series")
    pair: Any = result
    if isinstance(result[0], dict):
        if len(result) > 1:
            return Sample(None, f"{len(result)} series, where one is asked for")
        pair = result[0].get("value")
    try:
        value = float(pair[1])
    except (TypeError, ValueError, IndexError, KeyError):
        return Sample(None, "its answer is no number")
    return Sample(None, "NaN") if math.isnan(value) else Sample(value)
