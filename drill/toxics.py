"""Toxics: a fault under a name, with a direction and a share of the requests, as Toxiproxy's control API has them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from drill.faults import FAULTS, Fault, Plan, Stream
from drill.faults.plan import read_fraction
from sluicegate.errors import SluicegateError


class ControlError(SluicegateError):
    """Carry an answer of the control API that is not a success."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


@dataclass(frozen=True)
class Toxic:
    """Hold one toxic; `toxicity` is the share of the requests that it touches."""

    name: str
    type: str
    stream: Stream
    toxicity: float
    fault: Fault

    def to_json(self) -> dict[str, object]:
        """Return the toxic in the control API's shape."""
        return {
            "attributes": self.fault.attributes(),
            "name": self.name,
            "type": self.type,
            "stream": self.stream.value,
            "toxicity": self.toxicity,
        }


def decode_object(body: bytes) -> dict[str, object]:
    """Parse a request body that must be a JSON object; raises ControlError 400."""
    raw = decode_json(body)
    if not isinstance(raw, dict):
        raise bad_body("a JSON object is expected")
    return raw


def decode_json(body: bytes) -> object:
    """Parse a request body; raises ControlError 400."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise bad_body(str(error)) from error


def bad_body(reason: str) -> ControlError:
    """Return the error for a body that can't be used."""
    return ControlError(f"bad request body: {reason}", 400)


def read_text(raw: Mapping[str, object], name: str, default: str = "") -> str:
    """Return a text field; raises ControlError 400 for anything else."""
    value = raw.get(name, default)
    if not isinstance(value, str):
        raise bad_body(f"`{name}` is {value!r}, not text")
    return value


def parse_toxic(raw: Mapping[str, object]) -> Toxic:
    """Read a new toxic: downstream and on every request unless it says otherwise; raises ControlError 400."""
    kind = read_text(raw, "type")
    try:
        stream = Stream(read_text(raw, "stream", Stream.DOWNSTREAM))
    except ValueError as error:
        raise ControlError("stream was invalid, can be either upstream or downstream", 400) from error
    if kind not in FAULTS:
        raise ControlError("invalid toxic type", 400)
    name = read_text(raw, "name") or f"{kind}_{stream}"
    return Toxic(name, kind, stream, _toxicity(raw, 1.0), _fault(FAULTS[kind], _attributes(raw)))


def updated_toxic(toxic: Toxic, raw: Mapping[str, object]) -> Toxic:
    """Return the toxic with the given attributes and toxicity; the others stay; raises ControlError 400."""
    fault = _fault(FAULTS[toxic.type], {**toxic.fault.attributes(), **_attributes(raw)})
    return replace(toxic, toxicity=_toxicity(raw, toxic.toxicity), fault=fault)


def plan_request(toxics: Iterable[Toxic], rng: random.Random) -> tuple[Plan, str | None]:
    """Return what happens to one request under these toxics, and the name of the one that breaks it, if one does."""
    plan = Plan()
    breaker = None
    for toxic in toxics:
        if rng.random() < toxic.toxicity:
            plan = toxic.fault.apply(plan, toxic.stream, rng)
            breaker = breaker or (toxic.name if plan.broken else None)
    return plan, breaker


def _attributes(raw: Mapping[str, object]) -> Mapping[str, object]:
    attributes = raw.get("attributes") or {}
    if not isinstance(attributes, dict):
        raise bad_body(f"`attributes` is {attributes!r}, not an object")
    return attributes


def _fault(kind: type[Fault], attributes: Mapping[str, object]) -> Fault:
    try:
        return kind.parse(attributes)
    except ValueError as error:
        raise bad_body(str(error)) from error


def _toxicity(raw: Mapping[str, object], default: float) -> float:
    try:
        return read_fraction(raw, "toxicity", default)
    except ValueError as error:
        raise bad_body(str(error)) from error
