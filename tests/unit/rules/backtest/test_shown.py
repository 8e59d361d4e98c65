"""What people read of a replay."""

from __future__ import annotations

import pytest

from rules.backtest.evaluations import Evaluations
from rules.backtest.harm import Closing, Harm, Miss
from rules.backtest.history import Inputs
from rules.backtest.replay import Firing
from rules.backtest.run import Backtest, Result, Tried, utilization
from rules.backtest.shown import backtest_tables, instant, lasted, lead
from rules.generate import catalogue
from rules.scope import Scope
from sluicegate.records import AlertName
from tests.unit.rules.settings import fast

HARM = Harm((Miss(100_000, "lint-fix", 3), Miss(101_000, "test-patch", 1)), (Closing("drain", 95_000, 99_000),), 36_000)
INCIDENT = HARM.incidents[0]
PAGES = {
    AlertName.QUEUE_AGE_CRITICAL: (Firing(90_000, 110_000),),
    AlertName.DEADLINE_SLACK_LOW: (Firing(101_000, 103_000),),
    AlertName.PROVIDER_ERRORS_HIGH: (Firing(10_000, 11_000),),
    AlertName.TELEMETRY_STALE: (Firing(20_000, 30_000),),
}


def told(harm: Harm = HARM, interval_ms: int = 1000) -> list[str]:
    settings = fast()
    results = []
    for alert in catalogue(settings):
        pages = PAGES.get(alert.name, ())
        vain = tuple(page for page in pages if not harm.near(page)) if Tried.of(alert).about_deadlines else ()
        results.append(Result(Tried.of(alert), (), pages, vain))
    beside = Result(utilization(Scope(settings)), (), (Firing(0, 200_000),), ())
    evaluations = Evaluations.regular(0, 200_000, interval_ms)
    made = Backtest(settings, Inputs.RECORDS, evaluations, 0, 200_000, harm, tuple(results), beside)
    return list(backtest_tables(made))


def test_it_begins_with_what_was_read() -> None:
    assert told()[0] == (
        "Queue default, 1970-01-01 00:00:00.0 to 1970-01-01 00:03:20.0 UTC (3.3 min): 201 evaluations, 1 s apart,"
        " replayed from the records."
    )


def test_a_history_that_was_evaluated_at_another_pace_is_told_to_be_so() -> None:
    assert told()[1] == ""
    assert told(interval_ms=5000)[1] == (
        "The settings mean to evaluate every 1 s: what is shorter than this was not seen."
    )


def test_an_incident_has_its_first_page_and_what_utilization_said() -> None:
    lines = told()
    assert "Times that the gate left admit: 1, 4 s in all." in lines
    assert (
        "1\t1970-01-01 00:01:40.0\t1970-01-01 00:01:41.0\t4\tlint-fix, test-patch"
        "\t10 s before: SluicegateQueueAgeCritical\tfired already"
    ) in lines


def test_every_alert_about_deadlines_has_its_line_and_the_others_where_they_fired() -> None:
    lines = told()
    assert "SluicegateQueueAgeCritical\tpage\t1\t0\t10 s before" in lines
    assert "SluicegateDeadlineSlackLow\tticket\t1\t0\t1 s after" in lines
    assert "SluicegateProviderErrorsHigh\tpage\t1\t1\tnot at all" in lines
    assert "SluicegateTelemetryStale\tpage\t1\t-\t-" in lines
    assert not any(line.startswith("SluicegateGatePinned") for line in lines)
    assert "False pages: 1; of the alert on utilization: 0." in lines


def test_each_firing_is_listed_by_its_time_with_what_it_was() -> None:
    begins = told().index("fired\tfor\talert\twas")
    assert [line.split("\t")[1:] for line in told()[begins + 1 :]] == [
        ["3.3 min", "utilization", "about harm"],
        ["1 s", "SluicegateProviderErrorsHigh", "for nothing"],
        ["10 s", "SluicegateTelemetryStale", "not about deadlines"],
        ["20 s", "SluicegateQueueAgeCritical", "about harm"],
        ["2 s", "SluicegateDeadlineSlackLow", "about harm"],
    ]


def test_without_a_miss_there_is_no_incident() -> None:
    assert "No deadline was missed." in told(Harm((), (), 36_000))


def test_what_was_not_counted_is_not_said_to_have_been_met() -> None:
    lines = told(Harm((), (), 36_000, unseen=((-5_000, 10_000), (90_000, 150_000))))
    assert (
        "Deadlines were not counted for 70 s of it (stretches: 2). What was missed in one is seen at its end, if it has"
        " one."
    ) in lines
    assert "No deadline was seen to be missed." in lines
    assert "No deadline was missed." not in lines


def test_where_nothing_was_counted_nothing_is_said_of_deadlines() -> None:
    lines = told(Harm((), (), 36_000, unseen=((-5_000, 200_000),)))
    assert "Whether a deadline was missed is not known: none was counted in this time." in lines
    assert not any(line.startswith("No deadline") for line in lines)


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0 s"), (1500, "1.5 s"), (119_900, "119.9 s"), (120_000, "2 min"), (7_200_000, "2 h"), (604_800_000, "7 d")],
)
def test_a_length_is_told_in_the_unit_that_suits_it(ms: int, said: str) -> None:
    assert lasted(ms) == said


def test_instants_are_in_utc_and_leads_say_which_side() -> None:
    assert instant(1_772_366_400_350) == "2026-03-01 12:00:00.3"
    assert lead(HARM, INCIDENT, [Firing(99_000, 99_500)]) == "1 s before"
    assert lead(HARM, INCIDENT, [Firing(100_500, 100_600)]) == "0.5 s after"
    assert lead(HARM, INCIDENT, []) == "not at all"
