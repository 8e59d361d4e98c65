"""Say which version of each peer is measured: what its environment is made of, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_HIREDIS = "hiredis==3.5.0"
_REDIS_PY = ("redis==8.1.0", _HIREDIS)


@dataclass(frozen=True, slots=True)
class Pin:
    """Hold the package whose version counts, and all that is asked of pip by name."""

    package: str
    requirements: Sequence[str]
    # Jobs of one round: enough for a second of work, so that a slow peer does not hold the whole bench up.
    jobs: int = 2000
    picked: int = 20


# redis-py where the peer takes the one that we use, else the newest that it takes; the same parser in C for all that
# can use it.
PINS: Mapping[str, Pin] = {
    "rq": Pin("rq", ("rq==3.0.0", *_REDIS_PY), jobs=100),
    "celery": Pin("celery", ("celery==5.7.0", "packaging==26.4", *_REDIS_PY), jobs=1000),
    "arq": Pin("arq", ("arq==0.28.0", "redis==5.3.1", _HIREDIS), jobs=1000, picked=10),
    "saq": Pin("saq", ("saq==0.26.4", "redis==7.4.1", "typing_extensions==4.16.0", _HIREDIS)),
    "streaq": Pin("streaq", ("streaq==7.2.0", "coredis==6.9.0")),
    "dramatiq": Pin("dramatiq", ("dramatiq==2.2.1", *_REDIS_PY)),
    "taskiq": Pin("taskiq-redis", ("taskiq-redis==1.2.4", "taskiq==0.13.0", *_REDIS_PY)),
}

# Peers that are known not to run, and their error: only these may fail without failing the bench.
KNOWN_TO_FAIL: Mapping[str, str] = {}
