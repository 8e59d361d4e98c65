"""`sluicegate dashboards …` as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.__main__ import dispatch


def test_generate_writes_and_check_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["dashboards", "generate", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "sluicegate-overview.json").is_file()
    capsys.readouterr()

    assert dispatch(["dashboards", "generate", "--out", str(tmp_path), "--check"]) == 0
    assert capsys.readouterr().out == "2 of 2 files were up to date.\n"


def test_check_names_what_is_out_of_date_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sluicegate-overview.json"
    file.write_text("{}")

    assert dispatch(["dashboards", "generate", "--out", str(tmp_path), "--check"]) == 1
    assert f"out of date: {file}" in capsys.readouterr().out
    assert file.read_text() == "{}"


def test_a_settings_file_that_is_missing_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none.yaml"

    assert dispatch(["dashboards", "generate", "--settings", str(missing), "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"The settings file {missing} cannot be read")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--prometheus-url", "http://127.0.0.1:1"], 1, "Prometheus at 127.0.0.1:1 can't be reached"),
        (["--prometheus-url", "prometheus:9090"], 2, "no address of an HTTP server"),
        (["--prometheus-url", "http://127.0.0.1:1", "--since", "soon"], 2, "--since 'soon' is no time"),
        (["--prometheus-url", "http://127.0.0.1:1", "--until", "1h", "--since", "5m"], 2, "is not before"),
    ],
)
def test_a_picture_of_nothing_is_not_taken(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["dashboards", "picture", "--out", str(tmp_path), *words]) == code
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
