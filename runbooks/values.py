"""Type the values of a runbook: each is read with its unit, and resolved against the settings when it is used."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Generic, Self, TypeVar

from runbooks import quantity
from runbooks.context import Context
from runbooks.templates import TemplateRefused, render
from runbooks.where import Where, shown
from sluicegate.errors import SettingsError
from sluicegate.settings import default_settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    """Hold one value as it is written in the file."""

    text: str
    # An address may hold a secret, and most values are shown as they are.
    names_addresses: ClassVar[bool] = False

    @classmethod
    def parse(cls, text: str) -> T:
        """Turn the rendered text into the value; raises ValueError with the bound."""
        raise NotImplementedError

    @classmethod
    def read(cls, text: str, where: Where) -> Self:
        """Take a value from a file and try it on the default settings; raises SettingsError with file and field."""
        refused_on_trial(lambda: cls.parse(render(text, sample(), addresses=cls.names_addresses)), text, where)
        return cls(text)

    def resolve(self, context: Context) -> T:
        """Give the value under these settings; raises SettingsError where they take it past its bound."""
        try:
            return self.parse(render(self.text, context, addresses=self.names_addresses))
        except ValueError as error:
            raise SettingsError(
                f"The runbook's value {shown(self.text)} cannot be used with these settings: {error}.",
                getattr(error, "hint", ""),
            ) from error


class Text(Value[str]):
    """Hold one line of text, such as a path; empty where the setting it names is not set."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> str:
        return text


class Address(Text):
    """Hold a URL; it alone may name the settings' addresses, and it is shown masked."""

    __slots__ = ()
    names_addresses = True


class Method(Text):
    """Hold an HTTP method."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> str:
        if re.fullmatch(r"[A-Za-z]{1,20}", text, re.ASCII) is None:
            raise ValueError("not an HTTP method such as POST")
        return text


class Key(Text):
    """Hold an idempotency key, which goes into a header."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> str:
        if not text.isascii() or text != text.strip():
            raise ValueError("not plain ASCII without a space at its ends, which a header is")
        return text


class Duration(Value[float]):
    """Hold a length of time; `resolve` gives seconds."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> float:
        return quantity.duration_s(text)


class Count(Value[int]):
    """Hold a whole number of things."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> int:
        return quantity.count(text)


class Ratio(Value[float]):
    """Hold a share; `resolve` gives 0..1."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> float:
        return quantity.ratio(text)


class Percents(Value[tuple[int, ...]]):
    """Hold the steps of a ramp in percent, growing to 100."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> tuple[int, ...]:
        return quantity.percents(text)


@lru_cache(maxsize=1)
def sample() -> Context:
    """Give the context a file is tried on when it is read: the default settings."""
    return Context(default_settings())


def refused_on_trial(attempt: Callable[[], object], text: str, where: Where) -> None:
    """Run a trial and turn what it refuses into an error with file, field, value and bound."""
    try:
        attempt()
    except TemplateRefused as error:
        raise where.refuse(text, str(error), error.hint) from error
    except ValueError as error:
        raise where.refuse(text, str(error)) from error
