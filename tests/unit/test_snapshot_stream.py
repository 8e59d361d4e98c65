"""A snapshot's lines come whole and in their order, whatever the pieces in which the file is read."""

from __future__ import annotations

import gzip
import hashlib
import io

import pytest

from sluicegate.snapshot_stream import Unended, WholeLines


def stream_of(text: bytes) -> WholeLines:
    return WholeLines(io.BytesIO(gzip.compress(text, compresslevel=1)))


def test_lines_are_whole_however_long_and_the_checksum_is_of_all_but_the_last() -> None:
    lines = [b"%d:%b\n" % (number, b"x" * (number % 7) * 40_000) for number in range(100)]
    stream = stream_of(b"".join(lines))
    parts = list(stream)
    assert len(parts) > 1
    assert all(part.endswith(b"\n") for part in parts)
    assert b"".join(parts) == b"".join(lines)
    assert stream.sha256() == hashlib.sha256(b"".join(lines[:-1])).hexdigest()


def test_a_file_that_ends_within_a_line_is_an_error_after_the_lines_before_it() -> None:
    given: list[bytes] = []
    with pytest.raises(Unended):
        given.extend(stream_of(b"one\n" * 100_000 + b"tw"))
    assert set(b"".join(given).splitlines()) == {b"one"}


def test_a_line_that_is_too_long_for_any_job_is_not_read_into_memory() -> None:
    mebibyte = 1024 * 1024
    with pytest.raises(Unended):
        list(stream_of(b" " * (65 * mebibyte) + b"\n"))
    assert [len(part) for part in stream_of(b" " * (2 * mebibyte) + b"\n")] == [2 * mebibyte + 1]


def test_what_is_cut_off_or_no_gzip_file_is_an_error() -> None:
    whole = gzip.compress(b"one\n" * 1000)
    with pytest.raises(EOFError):
        list(WholeLines(io.BytesIO(whole[:-9])))
    with pytest.raises(OSError, match="Not a gzipped file"):
        list(WholeLines(io.BytesIO(b"one\n")))
