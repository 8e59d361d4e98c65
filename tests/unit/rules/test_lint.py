"""Every check refuses what it is there for, allows what is right, and yields to a waiver alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from rules.generate import render_pages, render_rules
from rules.lint.check import Surroundings
from rules.lint.checks import CHECKS
from rules.lint.linter import Report, lint
from rules.lint.query import parsed
from rules.lint.reference import reference
from rules.lint.rule_file import seconds
from sluicegate.__main__ import dispatch
from sluicegate.settings import default_settings
from tests.unit.rules.settings import ALL

AROUND = Surroundings(default_settings())
SHARE = 'sum by (queue) (increase(missed_total{queue="q"}[1h])) / sum by (queue) (increase(all_total{queue="q"}[1h]))'


def alert(expr: str, *more: str, severity: str = "page", wait: str = "4s", text: str = "Jobs wait.") -> str:
    """Write one alert that is right but for its expression and the lines given."""
    return indent(
        dedent(f"""\
        - alert: A
          expr: {expr!r}
          for: {wait}
          labels: {{queue: q, severity: {severity}, sluicegate_action: observe}}
          annotations: {{summary: S, description: "{text}", runbook_url: "https://x/A.md", dashboard_url: "https://y"}}
        """)
        + "".join(f"  {line}\n" for line in more),
        "    ",
    )


def linted(path: Path, rules: str, head: str = "", around: Surroundings = AROUND) -> Report:
    file = path / "rules.yml"
    file.write_text(f"groups:\n- name: g\n{head}  rules:\n{rules}", encoding="utf-8")
    return lint([file], around)


def names(report: Report) -> set[str]:
    return {finding.check for finding in report.refused}


RECORD = "    - record: queue:age:max\n      expr: max by (queue) (age)\n"
READS = alert('queue:age:max{queue="q"} > 1')

# Check, what it refuses, and the same put right.
CASES = {
    "file-shape, a key twice": ("file-shape", alert("up == 0", "for: 5s"), alert("up == 0")),
    "file-shape, no string": (
        "file-shape",
        alert("up == 0").replace("queue: q,", "queue: 1,"),
        alert("up == 0").replace("queue: q,", 'queue: "1",'),
    ),
    "file-shape, no duration": ("file-shape", alert("up == 0", wait="soon"), alert("up == 0", wait="1s500ms")),
    "promql-syntax": ("promql-syntax", alert("up =="), alert("up == 0")),
    "promql-features": ("promql-features", alert("limitk(3, up) == 0"), alert("max(up) == 0")),
    "promql-regexp, nothing to match": ("promql-regexp", alert('up{j=~"a"} == 0'), alert('up{j=~"a|b"} == 0')),
    "promql-regexp, anchors": ("promql-regexp", alert('up{j=~"^a.*"} == 0'), alert('up{j=~"a.*"} == 0')),
    "promql-rate, a gauge": ("promql-rate", alert("rate(age[1m]) > 1"), alert("rate(age_total[1m]) > 1")),
    "promql-rate, a counter's slope": ("promql-rate", alert("deriv(a_total[30s]) > 1"), alert("deriv(a[30s]) > 1")),
    "promql-rate, a short window": ("promql-rate", alert("rate(a_total[7s]) > 1"), alert("rate(a_total[8s]) > 1")),
    "promql-counter": ("promql-counter", alert("sum(a_total) > 5"), alert("increase(a_total[1m]) > 5")),
    "promql-nan, a sum": ("promql-nan", alert("sum(a / b) > 1"), alert("sum(a) / sum(b) > 1")),
    "promql-nan, a difference": ("promql-nan", alert("a / b != 1"), alert("a / (b > 0) != 1")),
    "promql-fragile": ("promql-fragile", alert("topk(3, a) > 1"), alert("a > 1")),
    "promql-impossible": (
        "promql-impossible",
        alert("a > 1 unless on (queue) sum by (job) (b) == 0"),
        alert("a > 1 unless on (queue) sum by (queue) (b) == 0"),
    ),
    "promql-selector": (
        "promql-selector",
        alert("queue_age_p95_seconds > 9"),
        alert('queue_age_p95_seconds{queue="q"} > 9'),
    ),
    "alert-comparison": ("alert-comparison", alert("up"), alert("absent(up)")),
    "alert-absent": ("alert-absent", alert("absent(up)", wait="3s"), alert("absent(up)", wait="4s")),
    "alert-annotations": (
        "alert-annotations",
        alert("up == 0").replace('dashboard_url: "https://y"', ""),
        alert("up == 0"),
    ),
    "alert-labels, no queue": ("alert-labels", alert("up == 0").replace("queue: q, ", ""), alert("up == 0")),
    "alert-labels, an unknown severity": (
        "alert-labels",
        alert("up == 0", severity="critical"),
        alert("up == 0", severity="ticket"),
    ),
    "alert-labels, a value": (
        "alert-labels",
        alert("up == 0").replace("labels: {", "labels: {much: '{{ $value }}', "),
        alert("up == 0").replace("labels: {", "labels: {much: '{{ $labels.job }}', "),
    ),
    "alert-template, a value": (
        "alert-template",
        alert("up == 0").replace("summary: S", "summary: '{{ $value }}'"),
        alert("up == 0"),
    ),
    "alert-template, a lost label": (
        "alert-template",
        alert("sum by (queue) (a) > 1", text="{{ $labels.class }}"),
        alert("sum by (class) (a) > 1", text="{{ $labels.class }}"),
    ),
    "alert-keep": (
        "alert-keep",
        alert("up == 0", "keep_firing_for: 7s"),
        alert("up == 0", "keep_firing_for: 8s"),
    ),
    "page-utilization": (
        "page-utilization",
        alert("node_cpu_busy > 1"),
        alert("node_cpu_busy > 1", severity="ticket"),
    ),
    "page-latency": ("page-latency", alert("up == 0", wait="29s"), alert("up == 0", wait="28s")),
    "forecast-window, the shortest deadline's": (
        "forecast-window",
        alert("deriv(a[31s]) < 1"),
        alert("deriv(a[30s]) < 1"),
    ),
    "forecast-window, a class's": (
        "forecast-window",
        alert('deriv(a{class="test-patch"}[91s]) < 1'),
        alert('deriv(a{class="test-patch"}[90s]) < 1'),
    ),
    "burn-reachable": ("burn-reachable", alert(f"{SHARE} > 1.44"), alert(f"{SHARE} > 0.144")),
    "rule-dependency, nobody makes it": ("rule-dependency", READS, RECORD + READS),
    "rule-dependency, too late": ("rule-dependency", READS + RECORD, RECORD + READS),
    "rule-duplicate": ("rule-duplicate", RECORD + RECORD, RECORD),
}


@pytest.mark.parametrize("case", CASES)
def test_a_check_refuses_what_is_wrong_and_nothing_else_and_allows_what_is_right(case: str, tmp_path: Path) -> None:
    check, wrong, right = CASES[case]

    assert names(linted(tmp_path, wrong)) == {check}
    assert names(linted(tmp_path, right)) == set()


def test_a_group_that_looks_too_seldom_is_refused(tmp_path: Path) -> None:
    assert names(linted(tmp_path, RECORD, head="  interval: 6m\n")) == {"group-interval"}
    assert names(linted(tmp_path, RECORD, head="  interval: 5m\n")) == set()


def test_a_page_that_is_not_there_is_refused(tmp_path: Path) -> None:
    around = Surroundings(default_settings(), tmp_path)

    assert names(linted(tmp_path, alert("up == 0"), around=around)) == {"runbook-page"}
    (tmp_path / "A.md").write_text("# A\n")
    assert names(linted(tmp_path, alert("up == 0"), around=around)) == set()


def test_every_check_has_its_case() -> None:
    tested = {check for check, _, _ in CASES.values()} | {"group-interval", "runbook-page"}

    assert tested == {check.name for check in CHECKS}


def test_a_waiver_above_or_inside_the_rule_holds_for_that_check_and_that_rule_alone(tmp_path: Path) -> None:
    waiver = "    # sluicegate: allow promql-fragile three are all there are\n"
    wrong = alert("topk(3, a) > 1")

    report = linted(tmp_path, waiver + wrong + wrong.replace("alert: A", "alert: B"))

    assert [(one.check, one.rule) for one in report.refused] == [("promql-fragile", "B")]
    assert [(one.rule, reason) for one, reason in report.waived] == [("A", "three are all there are")]
    inside = wrong.replace("      for: 4s\n", "      for: 4s\n  " + waiver)
    assert names(linted(tmp_path, inside)) == set()


def test_a_waiver_without_a_reason_or_of_no_check_waives_nothing(tmp_path: Path) -> None:
    wrong = alert("topk(3, a) > 1")

    assert names(linted(tmp_path, "    # sluicegate: allow promql-fragile\n" + wrong)) == {"promql-fragile"}
    slip = "    # sluicegate: allow promql-fragil a slip of the pen\n"
    assert names(linted(tmp_path, slip + wrong)) == {"promql-fragile", "waiver"}


@pytest.mark.parametrize("name", ALL)
def test_our_own_rules_pass_with_named_waivers_only(name: str, tmp_path: Path) -> None:
    settings = ALL[name]()
    file = tmp_path / "rules.yml"
    file.write_text(render_rules(settings), encoding="utf-8")
    for path, text in render_pages(settings, tmp_path).items():
        path.write_text(text, encoding="utf-8")

    report = lint([file], Surroundings(settings, tmp_path))

    # The intervals that many start from are too long for a deadline of 50 s, and that is all that is wrong.
    late = {"page-latency", "promql-rate"} if name == "usual" else set()
    assert {one.check for one in report.refused} == late, report.refused
    # Five minutes are not late for a job that has a day.
    waits = set() if name == "long" else {("page-latency", "SluicegateExecutorHolding")}
    assert {(one.check, one.rule) for one, _ in report.waived} == waits | {("alert-comparison", "SluicegateWatchdog")}


def test_a_prometheusrule_is_read_by_its_spec(tmp_path: Path) -> None:
    file = tmp_path / "rule.yml"
    file.write_text("kind: PrometheusRule\nspec:\n  groups:\n  - name: g\n    rules:\n" + alert("up"))

    assert names(lint([file], AROUND)) == {"alert-comparison"}


def test_the_command_names_place_check_and_rule_and_exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    linted(tmp_path, alert("up"))

    assert dispatch(["rules", "lint", str(tmp_path / "rules.yml")]) == 1
    said = capsys.readouterr().out
    assert said == (
        f"{tmp_path}/rules.yml:4: alert-comparison: A: the alert has no condition: it fires as long as there is a"
        " sample.\n"
    )


@pytest.mark.parametrize("text", ["[1, 2]", "a: {", "groups: 3"])
def test_what_is_no_rule_file_is_one_sentence_and_exit_2(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file.yml").write_text(text)

    assert dispatch(["rules", "lint", str(tmp_path / "file.yml")]) == 2
    assert str(tmp_path / "file.yml") in capsys.readouterr().err


def test_the_page_about_the_checks_is_what_the_code_generates(repository: Path) -> None:
    committed = (repository / "docs/reference/lints.md").read_text(encoding="utf-8")

    assert committed == reference(), "run `make generate`"
    assert all(f"## {check.name}\n" in committed for check in CHECKS)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", 90),
        ("1m30s", 90),
        ("500ms", 0.5),
        ("2h", 7200),
        ("1d", 86_400),
        ("2w", 1_209_600),
        ("1y", 31_536_000),
        ("", None),
        ("x", None),
    ],
)
def test_durations_are_read_as_prometheus_writes_them(text: str, length: float | None) -> None:
    assert seconds(text) == length


def test_a_tree_says_what_the_parentheses_said() -> None:
    tree = parsed("(a) / on (queue) group_left () (b > 0)")

    assert (tree.kind, tree.name, tree.labels, tree.many) == ("binary", "/", ("queue",), True)
    assert [one.name for one in tree.selectors()] == ["a", "b"]
