"""Read a runbook file into plain values that the shipped schema accepts; nothing past here sees YAML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from runbooks.verbs.outside import COMMON, found
from runbooks.where import Where, shown
from sluicegate.errors import SettingsError

LARGEST_BYTES = 64 * 1024


def read_document(path: Path) -> Mapping[str, Any]:
    """Read a file; raises SettingsError naming the file, the field, the value and the bound."""
    try:
        with path.open("rb") as opened:
            body = opened.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"The runbook {path} cannot be read: {error.strerror}.") from error
    return parse_document(body, str(path))


def parse_document(body: bytes, source: str) -> Mapping[str, Any]:
    """Parse and check a runbook's bytes; `source` names them in errors."""
    if len(body) > LARGEST_BYTES:
        raise SettingsError(f"The runbook {source} is larger than the {LARGEST_BYTES} bytes allowed.")
    try:
        # The loader is a SafeLoader: it builds no objects.
        document = yaml.load(body.decode("utf-8"), Loader=_PlainLoader)  # noqa: S506 (as above)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"The runbook {source} is not plain YAML.", " ".join(str(error).split())) from error
    fault = best_match(_validator().iter_errors(document))
    if fault is not None:
        raise _refusal(fault, Where(source))
    return document  # type: ignore[no-any-return]  # the schema has just said it is an object


def digest(document: Mapping[str, Any]) -> str:
    """Give the content's fingerprint: 16 hex digits of the SHA-256 over its sorted JSON.

    Comments don't count, and neither do the tests: a run goes by none of them.
    """
    content = {name: value for name, value in document.items() if name != "tests"}
    body = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def schema() -> Mapping[str, Any]:
    """Give the shipped JSON Schema, with the installed verbs beside the built-in ones."""
    loaded: dict[str, Any] = json.loads(files("runbooks").joinpath("schema.json").read_text(encoding="utf-8"))
    parts = loaded["$defs"]
    for name, step in found().items():
        common = {field: {"$ref": f"#/$defs/{'value' if field == 'timeout' else field}"} for field in COMMON}
        own = {"type": "object", "additionalProperties": False, **step.schema}
        required = [*step.schema.get("required", []), "timeout", "on_timeout"]
        parts[name] = {**own, "properties": {**step.schema["properties"], **common}, "required": required}
        loaded["properties"]["steps"]["items"]["properties"][name] = {"$ref": f"#/$defs/{name}"}
        for words in (parts["verb"], parts["cause"]):
            words["enum"].append(name)
    return loaded


@lru_cache(maxsize=1)
def _validator() -> Draft202012Validator:
    return Draft202012Validator(schema())


def _refusal(fault: ValidationError, where: Where) -> SettingsError:
    for part in fault.absolute_path:
        where = where.at(part)
    # jsonschema types these as anything, or not yet set; a fault that was found has both.
    value, bound, rule = cast(Any, fault.instance), cast(Any, fault.validator_value), str(fault.validator)
    match rule:
        case "required":
            missing = next(name for name in bound if name not in value)
            return where.at(missing).missing()
        case "additionalProperties":
            known = list(cast(Mapping[str, Any], fault.schema).get("properties", {}))
            extra = next(name for name in value if name not in known)
            return where.at(str(extra)).refuse(
                value[extra], "but no such field exists", f"Known are {', '.join(known)}."
            )
        case "enum":
            return where.refuse(value, f"not one of {', '.join(map(str, bound))}")
        case "const":
            return where.refuse(value, f"not {shown(bound)}")
        case "type":
            hint = (
                "A length of time carries its unit, such as 10s; a count stands in quotes." if bound == "string" else ""
            )
            return where.refuse(value, f"which is not of the type {bound}", hint)
        case "pattern":
            return where.refuse(value, f"which does not match {bound}")
        case _:
            return where.refuse(value, f"outside the bound {rule} {shown(bound)}")


class _PlainLoader(yaml.SafeLoader):
    """Load YAML without its surprises: no aliases, no tags, no key twice, and `on` stays a word."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed", None)
        if getattr(self.peek_event(), "tag", None) is not None:  # type: ignore[no-untyped-call]  # the stubs lack it
            raise yaml.composer.ComposerError(None, None, "tags are not allowed", None)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise yaml.constructor.ConstructorError(None, None, "a key is not a word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


# YAML 1.1 reads `on`, `no` and dates as other things than words; only true, false, null and numbers stay special.
_PlainLoader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:merge", "tag:yaml.org,2002:bool")
        or (tag == "tag:yaml.org,2002:bool" and first in "tTfF")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
