"""The generated rules, judged by the real promtool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rules.generate import RULES_FILE, render_all, slices
from rules.promtool import find_promtool, run_tests
from sluicegate.generated import write
from sluicegate.records import AlertName
from sluicegate.settings import default_settings
from tests.unit.rules.settings import ALL

# Rules made wrong: what is there, what a slip of the hand would leave, and the alert whose tests must notice.
MUTANTS = {
    "a threshold a hundredth too high": (">= 20\n", ">= 20.2\n", AlertName.QUEUE_AGE_HIGH),
    "a comparison without equality": (">= 0.05\n", "> 0.05\n", AlertName.PROVIDER_ERRORS_HIGH),
    "no guard for an empty queue": (
        'unless on (queue) queue_state:sluicegate_jobs:max{queue="default",state="pending"} == 0\n',
        "\n",
        AlertName.QUEUE_AGE_CRITICAL,
    ),
    "a for that is one evaluation longer": ("for: 4s", "for: 6s", AlertName.GATE_PINNED),
    "a keep that is one evaluation shorter": (
        "keep_firing_for: 30s",
        "keep_firing_for: 28s",
        AlertName.DUPLICATE_SIDE_EFFECT,
    ),
    "two exporters summed": (
        "max by (queue) (queue_age_p95",
        "sum by (queue) (queue_age_p95",
        AlertName.QUEUE_AGE_HIGH,
    ),
    "an action that changed": (
        'sluicegate_action: "drain"',
        'sluicegate_action: "observe"',
        AlertName.PROVIDER_TIMEOUTS_HIGH,
    ),
}


# promtool takes 20 to 30 s of a core for one file of settings. Those of the defaults run in the guide's test as well.
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ALL)
def test_rules_pass_their_tests_whatever_the_settings(name: str) -> None:
    verdicts = run_tests(ALL[name](), disturbed=True)

    assert [verdict.output for verdict in verdicts if not verdict.passed] == []
    assert len(verdicts) >= 3


# The mutation of all rules is `sluicegate rules mutate`; two slips of the hand are tried at once, the others for long.
AT_ONCE = ("a comparison without equality", "two exporters summed")
TRIED = [pytest.param(name, marks=() if name in AT_ONCE else pytest.mark.slow) for name in MUTANTS]


@pytest.mark.parametrize("name", TRIED)
def test_generated_tests_notice_a_rule_that_is_wrong(name: str, tmp_path: Path) -> None:
    right, wrong, alert = MUTANTS[name]
    rules, tests, *_ = write(render_all(default_settings(), tmp_path))
    head, *all_tests = tests.read_text().split("\n  - name: ")
    tests.write_text("\n  - name: ".join([head, *(test for test in all_tests if test.startswith(f'"{alert},'))]))

    assert judged(tests)[0] == 0
    assert right in rules.read_text()
    rules.write_text(rules.read_text().replace(right, wrong))
    code, said = judged(tests)

    assert code != 0
    assert f"alertname: {alert}" in said


def test_a_job_may_have_any_name(tmp_path: Path) -> None:
    """What YAML, PromQL or promtool's own notation would take for something else is only a name."""
    usual = default_settings()
    strange = usual.monitoring.model_copy(update={"exporter_job": 'it\'s a "job": #1 {x} \\ é'})
    cut = dict(slices(usual.model_copy(update={"monitoring": strange})))
    (files,) = (files for title, files in cut.items() if title.endswith(AlertName.GATE_FLAPPING))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tests,) = (tmp_path / name for name in files if name != RULES_FILE)

    code, said = judged(tests)
    assert code == 0, said


def judged(tests: Path) -> tuple[int, str]:
    """Return promtool's exit code and words on a file of unit tests."""
    answer = subprocess.run([find_promtool(), "test", "rules", str(tests)], capture_output=True, text=True, check=False)
    return answer.returncode, answer.stdout + answer.stderr
