"""Read YAML in which no key stands twice: the later one would replace the first, and nobody would see it. Pure."""

from __future__ import annotations

from typing import Any

import yaml


class _OnceLoader(yaml.SafeLoader):
    """Refuse a mapping that names a key twice; it builds no objects."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401 (as yaml has it)
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                raise yaml.composer.ComposerError(None, None, f"{key.value!r} stands twice", key.start_mark)
            seen.add((key.tag, key.value))
        return node


def parsed(text: str) -> object:
    """Give what a text holds; raises yaml.YAMLError, ValueError and RecursionError where it is not plain YAML."""
    return yaml.load(text, Loader=_OnceLoader)  # noqa: S506 (the loader is a SafeLoader)
