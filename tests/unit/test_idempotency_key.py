"""Does the Idempotency-Key header give its key, quoted or bare, and is everything else refused?"""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import UsageError
from sluicegate.idempotency_key import parse_key, quoted
from sluicegate.submission import MAX_KEY

PRINTABLE = "".join(chr(code) for code in range(0x21, 0x7F))
BARE = "".join(sorted(set(PRINTABLE) - set('",;')))


@given(st.text(PRINTABLE, min_size=1, max_size=MAX_KEY))
def test_every_key_survives_being_quoted(key: str) -> None:
    assert parse_key([quoted(key)]) == key


@given(st.text(BARE, min_size=1, max_size=MAX_KEY))
def test_a_bare_key_is_the_same_as_the_quoted_one(key: str) -> None:
    assert parse_key([key]) == parse_key([quoted(key)]) == key


@given(st.lists(st.text(st.characters(max_codepoint=0xFF), max_size=40), max_size=3))
def test_whatever_the_lines_hold_is_a_key_within_its_bounds_or_refused(lines: list[str]) -> None:
    try:
        key = parse_key(lines)
    except UsageError:
        return
    assert 1 <= len(key) <= MAX_KEY
    assert set(key) <= set(PRINTABLE)


@given(st.text(string.printable, max_size=30))
def test_what_follows_a_quoted_key_is_parameters_or_nothing(rest: str) -> None:
    """A key is never read out of something that only begins like one."""
    try:
        parse_key([f'"k"{rest}'])
    except UsageError:
        return
    assert rest.strip(" \t") == "" or rest.startswith(";")


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('"8e03978e-40d5-43dd-bc93-6894a57f9324"', "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ('  "k1"\t', "k1"),
        (r'"a\"b\\c"', 'a"b\\c'),
        ('"a,b;c"', "a,b;c"),
        ("42", "42"),
        ("job/4711?x=1", "job/4711?x=1"),
        ('"k1";v=1', "k1"),
        ('"k1"; v; w=?1; x=tok/en;y="a;\\"b";z=:YQ==:;q=-1.5', "k1"),
    ],
)
def test_the_forms_that_are_taken(line: str, key: str) -> None:
    assert parse_key([line]) == key


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ['""'],
        ['"'],
        ['"a'],
        ['a"'],
        ['"a" "b"'],
        ['"a"b'],
        ['"a",'],
        ['"a";V=1'],
        ['"a";=1'],
        [r'"a\b"'],
        ['"a b"'],
        ["a b"],
        ["a,b"],
        ["a;b=1"],
        ["a", "a"],
        ['"a"', '"a"'],
        ['("a" "b")'],
        ["é"],
        ['"é"'],
        ["k\x00"],
        ["k" * (MAX_KEY + 1)],
        [f'"{"k" * (MAX_KEY + 1)}"'],
    ],
)
def test_the_forms_that_are_refused(lines: list[str]) -> None:
    with pytest.raises(UsageError, match="The Idempotency-Key") as refused:
        parse_key(lines)
    assert "Send one header such as" in refused.value.hint


def test_a_long_header_is_not_repeated_whole() -> None:
    with pytest.raises(UsageError) as refused:
        parse_key(["é" * 5000])
    assert len(refused.value.message) < 200
