"""The provider's record of what it did."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drill.effects import Effect, LineLog, calls_path, duplicate_keys, read_effects
from sluicegate.errors import UsageError


def effect(number: int, key: str | None = "k") -> Effect:
    return Effect(ts=1.5, key=key, effect=number, job_class="lint-fix", canary=False)


def test_writes_lines_that_read_back(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "log")
    written = (effect(1), effect(2, key=None), effect(3, key='quote " and\nline'))
    for record in written:
        log.append(record.to_line())
    log.close()
    assert read_effects(tmp_path / "log") == written


def test_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert read_effects(tmp_path / "none") == ()


def test_a_torn_last_line_is_left_out_and_spoils_nothing_after_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(effect(1).to_line() + effect(2).to_line()[:20])
    assert read_effects(path) == (effect(1),)
    log = LineLog(path)
    log.append(effect(2).to_line())
    log.close()
    assert read_effects(path) == (effect(1), effect(2))


@pytest.mark.parametrize("line", ["[]", "3", '{"ts":1}', '{"ts":"x","key":"k","effect":1,"class":null,"canary":false}'])
def test_a_line_that_is_no_effect_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Effect.from_line(line)


def test_names_the_keys_with_more_than_one_effect_and_never_the_missing_key() -> None:
    seen = [effect(1, "a"), effect(2, "b"), effect(3, "a"), effect(4, None), effect(5, None)]
    assert duplicate_keys(seen) == {"a": 2}


def test_logs_calls_beside_the_effects() -> None:
    assert calls_path(Path("/x/provider.jsonl")) == Path("/x/provider.calls.jsonl")


def test_a_log_that_cant_be_written_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be written"):
        LineLog(tmp_path / "missing" / "log")
    assert not os.path.lexists(tmp_path / "missing")
