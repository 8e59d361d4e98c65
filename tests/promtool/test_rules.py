"""The generated rules, judged by the real promtool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rules.generate import RULES_FILE, TESTS_FILE, render_rules, render_tests, write_all
from rules.promtool import find_promtool, run_tests
from sluicegate.settings import default_settings
from tests.unit.rules.settings import ALL

# One rule of each kind made wrong: what is there, what a slip of the hand would leave.
MUTANTS = {
    "a threshold a hundredth too high": (">= 20\n", ">= 20.2\n"),
    "a comparison without equality": (">= 0.05\n", "> 0.05\n"),
    "no guard for an empty queue": (
        'unless on (queue) queue_state:sluicegate_jobs:max{queue="default",state="pending"} == 0\n',
        "\n",
    ),
    "a keep that is one evaluation shorter": ("keep_firing_for: 30s", "keep_firing_for: 28s"),
    "two exporters summed": ("max by (queue) (queue_age_p95", "sum by (queue) (queue_age_p95"),
}


@pytest.mark.parametrize("name", ALL)
def test_rules_pass_their_tests_whatever_the_settings(name: str) -> None:
    verdicts = run_tests(ALL[name]())

    assert [verdict.output for verdict in verdicts if not verdict.passed] == []
    assert len(verdicts) >= 3


@pytest.mark.parametrize("name", MUTANTS)
def test_generated_tests_notice_a_rule_that_is_wrong(name: str, tmp_path: Path) -> None:
    rules, tests, _ = write_all(default_settings(), tmp_path)
    right, wrong = MUTANTS[name]
    assert right in rules.read_text()
    rules.write_text(rules.read_text().replace(right, wrong))

    answer = subprocess.run([find_promtool(), "test", "rules", str(tests)], capture_output=True, text=True, check=False)

    assert answer.returncode != 0
    assert "FAILED" in answer.stdout + answer.stderr


def test_no_utilization_metric_is_in_any_rule() -> None:
    rules = render_rules(default_settings())

    for name in ("cpu", "memory", "load"):
        assert name not in rules.lower().replace("workload", "").split("annotations")[0]


def test_tests_name_the_rule_file_beside_them() -> None:
    assert f"- {RULES_FILE}\n" in render_tests(default_settings())
    assert TESTS_FILE != RULES_FILE
