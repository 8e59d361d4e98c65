"""What the source of a test tells about it: whether it is that of before, and which parts of the library it names."""

from __future__ import annotations

import hashlib
import inspect
import re

import pytest

# What asks the library's source itself (tests/function_values.py, tests/run_frame.py).
_ASKS = {"value_of", "worth", "worth_counted", "asked"}
# What is called, what pcall is given, and what is of one of the library's tables.
_CALLED = re.compile(r"\b[A-Za-z_]\w*\.\w+|(?<=pcall\()\w+|\b\w+(?=\()")
# A table whose function a helper is told by its word.
_TOLD = re.compile(r"\b([A-Z])\.\{")
_TABLES = ("commands", "effects")
_NAMES_TABLES = re.compile(r"\b(?:commands|effects|asked)\b")


def digest_of(item: pytest.Item) -> str:
    """Give a fingerprint of a test's own source."""
    assert isinstance(item, pytest.Function)
    return hashlib.sha256(inspect.getsource(item.function).encode()).hexdigest()[:16]


def functions_named(item: pytest.Item) -> set[str]:
    """Give the words in a test's source, and in that of what it calls, where it asks the library what parts are worth.

    Such a part runs in a script of its own, which no mark outlives.
    """
    assert isinstance(item, pytest.Function)
    module = vars(item.module)
    if not _ASKS & module.keys():
        return set()
    sources, met = [inspect.getsource(item.function)], set[str]()
    for source in sources:
        helpers = {word for word in re.findall(r"\w+", source) if inspect.isfunction(module.get(word))} - met
        met |= helpers
        sources += [inspect.getsource(module[word]) for word in sorted(helpers)]
    whole = "\n".join(sources)
    # A command, an effect of a run's step, and a function of a table are often the word that a helper is given.
    words = re.findall(r'"(\w+)"', whole)
    tables = {*_TOLD.findall(whole), *(_TABLES if _NAMES_TABLES.search(whole) else ())}
    return {*_CALLED.findall(whole), *(f"{table}.{word}" for word in words for table in tables)}
