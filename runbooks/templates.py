"""Render a value of a runbook: one short line in which declared names stand for settings.

A template may hold declared names (`context.py`) and nothing else: no filter, call, operator, literal or index. What
passes is rendered in a sandbox with strict undefined all the same, and the result is bounded, because a sandbox alone
lets `'a' * 10**8` and line breaks through.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from runbooks.context import NAMES, Context, is_address, is_declared
from runbooks.where import shown

TEMPLATE_MOST = 200
RESULT_MOST = 512

_ALLOWED = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Getattr)


class TemplateRefused(ValueError):
    """Say which bound a value broke, as the end of a sentence, and what to do about it."""

    def __init__(self, bound: str, hint: str = "") -> None:
        super().__init__(bound)
        self.hint = hint


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)


def render(text: str, context: Context, *, addresses: bool = False) -> str:
    """Give the rendered line; raises TemplateRefused naming the bound that was broken.

    The settings' addresses may hold secrets: only a value that is shown masked may name them (`addresses`).
    """
    if "{" not in text:
        return _one_line(text, RESULT_MOST)
    names = names_in(text)
    if not addresses and (secret := next(filter(is_address, names), None)):
        raise TemplateRefused(
            f"and {secret} is an address, which may hold a secret", "An address may stand where one is called, alone."
        )
    try:
        result = _compiled(text).render(_tree({name: context.named(name) for name in names}))
    except TemplateError as error:
        raise TemplateRefused(f"which cannot be rendered: {error.message}") from error
    return _one_line(result, RESULT_MOST)


def names_in(text: str) -> tuple[str, ...]:
    """Give the declared names a template refers to; raises TemplateRefused for anything that is not such a name."""
    _one_line(text, TEMPLATE_MOST)
    try:
        tree = _environment().parse(text)
    except TemplateSyntaxError as error:
        raise TemplateRefused(f"which is not a template: {error.message}", _HINT) from error
    return tuple(dict.fromkeys(_names(tree)))


_HINT = "Name a setting such as {{ contract.timings.canary_timeout_s }}, alone between the braces."


def _names(node: nodes.Node) -> list[str]:
    if not isinstance(node, _ALLOWED):
        raise TemplateRefused(f"and holds a {type(node).__name__.lower()} where only a declared name may stand", _HINT)
    if isinstance(node, nodes.Name | nodes.Getattr):
        name = _dotted(node)
        if not is_declared(name):
            near = get_close_matches(name, NAMES, n=1)
            hint = f"Did you mean `{near[0]}`?" if near else _HINT
            raise TemplateRefused(f"and {shown(name)} is not a declared name", hint)
        return [name]
    return [name for child in node.iter_child_nodes() for name in _names(child)]


def _dotted(node: nodes.Node) -> str:
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr):
        return f"{_dotted(node.node)}.{node.attr}"
    raise TemplateRefused(f"and holds a {type(node).__name__.lower()} where only a declared name may stand", _HINT)


@lru_cache(maxsize=256)
def _compiled(text: str) -> Template:
    return _environment().from_string(text)


def _tree(values: dict[str, str]) -> dict[str, object]:
    tree: dict[str, object] = {}
    for name, value in values.items():
        branch = tree
        *parents, last = name.split(".")
        for part in parents:
            inner = branch.setdefault(part, {})
            if not isinstance(inner, dict):
                raise TypeError(f"{name} goes through a value")
            branch = inner
        branch[last] = value
    return tree


def _one_line(text: str, most: int) -> str:
    if len(text) > most:
        raise TemplateRefused(f"{len(text)} characters long, above the {most} allowed")
    if not text.isprintable():
        raise TemplateRefused("which holds a line break or another character that cannot be printed")
    return text
