"""A file that is followed: what a change, a bad one and a missing file do to what is in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.errors import SettingsError
from sluicegate.web.kept_file import KeptFile
from sluicegate.web.tokens import read_tokens

FIRST, SECOND = "the-first-token-of-all", "the-second-token-of-all"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{FIRST}\n")
    return path


def test_a_change_is_taken_at_the_next_look_and_once(file: Path) -> None:
    kept = KeptFile(file, read_tokens)
    assert (kept.renew(), kept.value) == (False, (FIRST,))
    file.write_text(f"{SECOND}\n{FIRST}\n")
    assert (kept.renew(), kept.value) == (True, (SECOND, FIRST))
    assert kept.renew() is False


def test_a_change_that_makes_no_sense_leaves_the_last_good_value(file: Path) -> None:
    kept = KeptFile(file, read_tokens)
    for spoil in (lambda: file.write_text("short\n"), file.unlink):
        spoil()
        assert (kept.renew(), kept.value) == (False, (FIRST,))
    file.write_text(f"{SECOND}\n")
    assert (kept.renew(), kept.value) == (True, (SECOND,))


def test_there_is_no_start_without_a_good_file_and_no_message_repeats_it(file: Path) -> None:
    file.write_text("pass word of three words\n")
    with pytest.raises(SettingsError) as refused:
        KeptFile(file, read_tokens)
    assert "pass" not in str(refused.value).replace(str(file), "")
