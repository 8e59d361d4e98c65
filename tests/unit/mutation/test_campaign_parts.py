"""Which tests are run against a mutant, and how its outcome is judged."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.mutation.choosing import LISTED_S, PIECES, Chooser, Reach
from tests.mutation.memory import Known, Reached
from tests.mutation.mutants import mutants_of
from tests.mutation.reasons import Reasons
from tests.mutation.report import Fate, Outcome, Report
from tests.mutation.sources import Sources

MUTANT = mutants_of("one.lua", "function f() if a then b() end end", count(1))[0][0]
NONE = Reasons({})
LISTED = Reasons({MUTANT.key: "nothing reads it"})


def reach(test: str, seconds: float = 1.0, *marks: int) -> Reach:
    return Reach(test, seconds, frozenset(marks or (MUTANT.mark,)))


def chosen(chooser: Chooser, most_s: float = 10) -> list[str]:
    return [one.test for one in chooser.tests_for(MUTANT, most_s)]


def test_only_tests_that_reach_a_mutant_are_run_and_the_quick_ones_first() -> None:
    tests = [reach("slow", 5.0), reach("quick"), reach("elsewhere", 1.0, 999_999)]
    assert chosen(Chooser({one.test: one for one in tests})) == ["quick", "slow"]


def test_a_test_that_gets_where_few_others_get_comes_first() -> None:
    tests = [reach(f"plain {n}", 0.5) for n in range(5)] + [reach("deep", 1.0, MUTANT.mark, MUTANT.mark + 1)]
    assert chosen(Chooser({one.test: one for one in tests}))[0] == "deep"


def test_a_test_that_found_a_mutant_nearby_comes_first() -> None:
    chooser = Chooser({name: reach(name, seconds) for name, seconds in (("quick", 1.0), ("finder", 1.1))})
    assert chosen(chooser) == ["quick", "finder"]
    chooser.learn(MUTANT, "finder")
    assert chosen(chooser) == ["finder", "quick"]


def test_a_piece_of_each_long_test_is_the_last_resort() -> None:
    pieces = [f"{PIECES}::{name}[{n}]" for name in ("rows", "machine") for n in range(3)]
    run = chosen(Chooser({name: reach(name, 50.0) for name in ("a test", *pieces)}))
    assert run[0] == "a test"
    assert [name.partition("[")[0] for name in run[1:]] == [f"{PIECES}::rows", f"{PIECES}::machine"]


def test_no_more_tests_are_run_than_fit_in_the_time_but_always_one() -> None:
    chooser = Chooser({name: reach(name, 3.0) for name in ("a", "b", "c")})
    assert len(chosen(chooser, 7)) == 2
    assert len(chosen(chooser, 1)) == 1


def outcome(fate: Fate) -> Outcome:
    return Outcome(MUTANT, fate, "a test", 1, 1)


def report(*fates: Fate, reasons: Reasons = NONE) -> Report:
    return Report(len(fates), [outcome(fate) for fate in fates], reasons)


@pytest.mark.parametrize("fate", [Fate.SURVIVED, Fate.UNREACHED, Fate.DOUBTFUL])
def test_a_survivor_without_a_reason_fails_the_campaign(fate: Fate) -> None:
    assert not report(*[Fate.KILLED] * 50, fate).passes
    assert report(*[Fate.KILLED] * 50, fate, reasons=LISTED).passes
    assert report(*[Fate.KILLED] * 50, Fate.TIMED_OUT).passes


def test_too_many_survivors_fail_it_whatever_their_reasons() -> None:
    assert not report(*[Fate.KILLED] * 18, Fate.SURVIVED, reasons=LISTED).passes
    assert report(*[Fate.KILLED] * 19, Fate.SURVIVED, reasons=LISTED).passes


def test_nothing_tried_is_no_success() -> None:
    assert not report().passes


def test_the_report_names_survivors_and_what_is_listed_in_vain() -> None:
    gone = ("one.lua", "f", "if c then", "if negated")
    lines = list(replace(report(Fate.SURVIVED, Fate.KILLED, reasons=LISTED), stale=[gone]).lines())
    assert f"equivalent {MUTANT}" in lines
    assert f"LISTED, YET KILLED {MUTANT}" in lines
    assert "LISTED, YET GONE one.lua | f | if c then | if negated" in lines
    assert lines[-1].startswith("2 mutants found, 2 tried, 1 killed (50.0%, goal 95%), 1 survive with a reason, 0")
    assert f"SURVIVOR {MUTANT}" in list(report(Fate.SURVIVED).lines())


def test_every_outcome_is_written(tmp_path: Path) -> None:
    report(Fate.SURVIVED, reasons=LISTED).write(tmp_path / "out" / "one.json")
    (row,) = json.loads((tmp_path / "out" / "one.json").read_text(encoding="utf-8"))["mutants"]
    assert (row["file"], row["line"], row["fate"], row["reason"]) == ("one.lua", 1, "survived", "nothing reads it")


def test_a_reason_that_says_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "reasons.yaml"
    path.write_text("one.lua:\n  f:\n    if a then:\n      if negated:\n", encoding="utf-8")
    with pytest.raises(ValueError, match="a survivor needs a reason"):
        Reasons.read(path)


def test_every_listed_reason_has_its_mutant() -> None:
    assert Reasons.read().without_mutant(Sources.read().mutants) == []


SOURCE = "function f() if a then b() end end\nfunction T.g() if c then d() end end"


def sources_of(text: str) -> Sources:
    return Sources.of({"one.lua": text})


def test_what_a_test_reaches_is_known_though_other_functions_change(tmp_path: Path) -> None:
    before = sources_of(SOURCE)
    f, g = (before.marks_of({("one.lua", name)}) for name in ("f", "T.g"))
    reached = Reached.read(tmp_path, before)
    reached.note("in f", "d", 0.1, f[:1])
    reached.note("in g", "d", 0.1, g[:1])
    reached.write(before)

    after = sources_of(f"local x\n{SOURCE}".replace("if a then", "if a and e then"))
    reaches = Reached.read(tmp_path, after).reaches(["in f", "in g"])

    # Of a function that changed, all of it counts as reached.
    assert reaches["in f"].marks == frozenset(after.marks_of({("one.lua", "f")}))
    assert reaches["in g"].marks == frozenset(after.marks_of({("one.lua", "T.g")})[:1])
    assert Reached.read(tmp_path, after).knows("in f", "d")
    assert not Reached.read(tmp_path, after).knows("in f", "e")


def test_what_calls_a_new_function_now_counts_as_reaching_it(tmp_path: Path) -> None:
    before = sources_of("function f() if a then b() end end\nfunction T.g() if c then d() end end")
    reached = Reached.read(tmp_path, before)
    for name in ("f", "T.g"):
        reached.note(name, "d", 0.1, before.marks_of({("one.lua", name)}))
    reached.write(before)

    new = "local function low() if e then h() end end"
    after = sources_of(f"{new}\nfunction f() if a then low() end end\nfunction T.g() if c then d() end end")
    reaches = Reached.read(tmp_path, after).reaches(["f", "T.g"])

    low = set(after.marks_of({("one.lua", "low")}))
    assert low <= reaches["f"].marks
    assert not low & reaches["T.g"].marks


def test_what_is_asked_for_by_its_name_reaches_what_it_calls() -> None:
    lines = ("local function low() end", "function T.mid() low() end", "function top() if low then T.mid() end end")
    sources = sources_of("\n".join(lines))
    low, mid, top = (("one.lua", name) for name in ("low", "T.mid", "top"))
    assert sources.reached_from({"low", "mid"}) == {low: 0}
    assert sources.reached_from({"T.mid"}) == {mid: 0, low: 1}
    assert sources.reached_from({"top"}) == {top: 0, mid: 1, low: 2}
    assert {sources.places[mark][1] for mark in sources.marks_of({low, top})} == {"low", "top"}


def test_a_test_that_asks_for_a_part_by_its_name_comes_first() -> None:
    place = (MUTANT.file, MUTANT.function)
    near = [replace(reach(f"{away} away", 1.5), near={place: away}) for away in (2, 0, 1)]
    tests = [*near, reach("plain", 1.4), replace(reach("long", 9.0), near={place: 0})]
    # The others get the whole bound, whatever those that ask for the function, or for one near it, take.
    assert chosen(Chooser({one.test: one for one in tests}), 2.0) == ["0 away", "long", "1 away", "plain"]
    assert chosen(Chooser({one.test: one for one in [*near, tests[3]]}))[:2] == ["0 away", "1 away"]


def test_a_kill_stands_while_its_function_and_its_test_are_the_same(tmp_path: Path) -> None:
    Known.read(tmp_path).note(outcome(Fate.KILLED), "function 1", "test 1")
    known = Known.read(tmp_path)

    assert known.killer(MUTANT) == "a test"
    assert known.standing(MUTANT, "function 1", {"a test": "test 1"}) == outcome(Fate.KILLED)
    assert known.standing(MUTANT, "function 2", {"a test": "test 1"}) is None
    assert known.standing(MUTANT, "function 1", {"a test": "test 2"}) is None
    assert known.standing(MUTANT, "function 1", {}) is None


def test_a_survivor_never_stands(tmp_path: Path) -> None:
    known = Known.read(tmp_path)
    known.note(outcome(Fate.KILLED), "f", "t")
    known.note(outcome(Fate.SURVIVED), "f", "t")
    assert Known.read(tmp_path).standing(MUTANT, "f", {"a test": "t"}) is None
    assert Known.read(tmp_path).killer(MUTANT) == ""


def test_the_test_that_killed_it_before_comes_first_and_then_those_of_its_line() -> None:
    chooser = Chooser(
        {name: reach(name, seconds) for name, seconds in (("quick", 0.1), ("killer", 2.0), ("line", 3.0))}
    )
    assert chosen(chooser)[0] == "quick"
    chooser.learn(replace(MUTANT, mutation="another", function=MUTANT.function), "line")
    assert [one.test for one in chooser.tests_for(MUTANT, 10, "killer")] == ["killer", "line", "quick"]
    assert [one.test for one in chooser.tests_for(MUTANT, 10, "gone")] == ["line", "quick", "killer"]


def test_what_is_listed_gets_little_time_and_no_last_resort() -> None:
    tests = [reach(name, 0.4) for name in ("a", "b", f"{PIECES}::rows[0]")]
    assert len(chosen(Chooser({one.test: one for one in tests}), LISTED_S)) == 1
    assert len(chosen(Chooser({one.test: one for one in tests}))) == 3
