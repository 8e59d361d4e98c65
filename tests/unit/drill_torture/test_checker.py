"""The checker is fed logs in which one promise is broken, and says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drill.checker.logs import BadLog, read_logs
from drill.checker.verdict import Verdict, table
from tests.unit.drill_torture.story import (
    LOSING,
    Story,
    accepted,
    deed,
    gate,
    refused,
    unanswered,
)


def failed(verdict: Verdict) -> set[str]:
    return {finding.name for finding in verdict.findings if finding.failed}


def word(verdict: Verdict, name: str) -> str:
    (found,) = [finding.word for finding in verdict.findings if finding.name == name]
    return found


def test_a_run_that_kept_every_promise_passes(tmp_path: Path) -> None:
    verdict = Story().judged(tmp_path)
    assert failed(verdict) == set()
    assert verdict.passed
    assert verdict.counts["ends"] == {"succeeded": 2, "unknown": 1, "expired": 1}
    assert verdict.counts["refusals"] == {"conflict": 1, "overloaded": 2, "unknown_class": 2}
    assert verdict.counts["expired"] == {"and done all the same": 1}


def test_what_a_repeat_does_nothing_to_may_be_done_twice(tmp_path: Path) -> None:
    verdict = Story().judged(tmp_path)
    assert word(verdict, "twice_none") == "-"
    assert [finding.broken for finding in verdict.findings if finding.name == "twice_none"] == [("c: done 2 times",)]


def test_a_canary_belongs_to_no_caller(tmp_path: Path) -> None:
    story = Story()
    story.done("canary:run:some:1", 20, canary=True)
    assert story.judged(tmp_path).passed


def doubled_keyed(story: Story) -> None:
    story.done("a", 9.0)


def doubled_unsafe(story: Story) -> None:
    story.done("b", 17.0)


def done_without_a_key(story: Story) -> None:
    story.done(None, 9.0)


def done_for_nobody(story: Story) -> None:
    story.done("never-sent", 9.0)


def done_though_refused(story: Story) -> None:
    story.done("d", 9.0)


def succeeded_without_an_effect(story: Story) -> None:
    story.provider = [line for line in story.provider if line["key"] != "a"]


def an_accepted_job_that_still_waits(story: Story) -> None:
    story.seen("e", "ready")


def an_accepted_job_that_nobody_looked_at(story: Story) -> None:
    story.callers[0] = [line for line in story.callers[0] if line["kind"] != "seen" or line["key"] != "c"]


def an_accepted_job_whose_only_look_got_no_answer(story: Story) -> None:
    an_accepted_job_that_nobody_looked_at(story)
    story.seen("c", "unanswered")


def an_accepted_job_that_was_looked_at_too_early(story: Story) -> None:
    story.asked(0, "f", 50.0, 50.1, accepted())
    story.asked(1, "f", 50.0, 50.1, accepted(replayed=True))
    story.seen("f", "gone")


def an_accepted_job_that_is_gone(story: Story) -> None:
    story.seen("e", "gone")


def two_ids_for_one_key(story: Story) -> None:
    story.asked(1, "a", 20.0, 20.1, accepted(replayed=True, job_id="another"))


def accepted_twice(story: Story) -> None:
    story.asked(1, "a", 20.0, 20.1, accepted())


def refused_after_it_was_accepted(story: Story) -> None:
    story.asked(1, "a", 20.0, 20.1, refused("overloaded", 5.0))


def refused_and_accepted_at_once(story: Story) -> None:
    story.asked(0, "f", 20.0, 20.2, accepted())
    story.asked(1, "f", 20.1, 20.3, refused("overloaded", 5.0))
    story.seen("f", "expired")


def another_reason_while_live(story: Story) -> None:
    story.asked(0, "b", 13.0, 13.1, refused("admission_closed", 1.9, replayed=True), effects="unsafe")


def accepted_while_a_refusal_is_live(story: Story) -> None:
    story.asked(0, "g", 20.0, 20.1, refused("overloaded", 5.0))
    story.asked(1, "g", 22.0, 22.1, accepted())
    story.seen("g", "expired")


def decided_anew_while_live(story: Story) -> None:
    story.asked(0, "b", 13.0, 13.1, refused("overloaded", 1.95), effects="unsafe")


def another_time_to_come_back(story: Story) -> None:
    story.asked(0, "b", 13.0, 13.1, refused("overloaded", 5.0, replayed=True), effects="unsafe")


def a_final_refusal_that_is_taken_back(story: Story) -> None:
    story.asked(0, "d", 39.0, 39.1, accepted())
    story.seen("d", "expired")


def a_final_refusal_that_may_be_repeated(story: Story) -> None:
    story.asked(0, "d", 39.0, 39.1, refused("unknown_class", 5.0, replayed=True))


def another_payload_is_accepted(story: Story) -> None:
    story.asked(1, "a", 20.0, 20.1, accepted(replayed=True), other=True)


def another_payload_gets_the_first_ones_refusal(story: Story) -> None:
    story.asked(1, "d", 20.0, 20.1, refused("unknown_class", None, replayed=True), other=True)


def a_job_sent_once(story: Story) -> None:
    story.asked(0, "h", 20.0, 20.1, accepted())
    story.seen("h", "expired")


def an_answer_nobody_is_promised(story: Story) -> None:
    story.asked(0, "a", 20.0, 20.1, refused("status 500", None) | {"answer": "trouble"})


def no_worker_was_killed(story: Story) -> None:
    story.deeds = [line for line in story.deeds if line["whom"] != "worker-1"]


def the_server_was_not_killed(story: Story) -> None:
    story.deeds = [line for line in story.deeds if line["whom"] != "queue-server"]


def nothing_succeeded(story: Story) -> None:
    story.seen("a", "expired")
    story.seen("e", "failed")


BROKEN: dict[Callable[[Story], None], set[str]] = {
    doubled_keyed: {"twice_keyed"},
    doubled_unsafe: {"twice_unsafe"},
    done_without_a_key: {"strangers"},
    done_for_nobody: {"strangers"},
    done_though_refused: {"strangers"},
    succeeded_without_an_effect: {"empty_success"},
    an_accepted_job_that_still_waits: {"ends"},
    an_accepted_job_that_nobody_looked_at: {"ends"},
    an_accepted_job_whose_only_look_got_no_answer: {"ends"},
    an_accepted_job_that_was_looked_at_too_early: {"ends"},
    an_accepted_job_that_is_gone: {"lost"},
    two_ids_for_one_key: {"one_id"},
    accepted_twice: {"one_acceptance"},
    refused_after_it_was_accepted: {"accepted_for_good"},
    refused_and_accepted_at_once: {"accepted_for_good"},
    another_reason_while_live: {"same_while_live"},
    accepted_while_a_refusal_is_live: {"same_while_live"},
    decided_anew_while_live: {"same_while_live"},
    another_time_to_come_back: {"same_while_live"},
    a_final_refusal_that_is_taken_back: {"same_while_live"},
    a_final_refusal_that_may_be_repeated: {"same_while_live"},
    another_payload_is_accepted: {"conflicts"},
    another_payload_gets_the_first_ones_refusal: {"conflicts"},
    a_job_sent_once: {"sent_twice"},
    an_answer_nobody_is_promised: {"trouble"},
    no_worker_was_killed: {"worker_kills"},
    the_server_was_not_killed: {"server_kills"},
    nothing_succeeded: {"succeeded"},
}


@pytest.mark.parametrize(("break_it", "names"), BROKEN.items(), ids=[one.__name__ for one in BROKEN])
def test_one_broken_promise_fails_the_run_and_is_named(
    break_it: Callable[[Story], None], names: set[str], tmp_path: Path
) -> None:
    story = Story()
    break_it(story)
    verdict = story.judged(tmp_path)
    assert failed(verdict) == names
    assert not verdict.passed
    assert any("BROKEN" in line or "NOT LOOKED AT" in line for line in table(verdict))


def test_what_lies_on_the_edge_of_a_refusals_life_proves_nothing(tmp_path: Path) -> None:
    story = Story()
    # Refused between 20.0 and 20.5 for 2 s: it is due between 22.0 and 22.5, and this ask may have come just after.
    story.asked(0, "g", 20.0, 20.5, refused("overloaded", 2.0))
    story.asked(1, "g", 21.9, 22.1, accepted())
    story.seen("g", "expired")
    assert story.judged(tmp_path).passed


def test_a_lost_answer_may_be_the_one_that_decided(tmp_path: Path) -> None:
    story = Story()
    story.asked(0, "g", 20.0, 21.0, unanswered())
    story.asked(0, "h", 20.0, 0, None)
    for key in "gh":
        story.asked(1, key, 22.0, 22.1, accepted(replayed=True))
        story.done(key, 22.5)
        story.seen(key, "succeeded")
    assert story.judged(tmp_path).passed


def test_a_loss_is_reported_where_the_server_may_lose_and_fails_nothing(tmp_path: Path) -> None:
    story = losing()
    an_accepted_job_that_is_gone(story)
    doubled_unsafe(story)
    accepted_while_a_refusal_is_live(story)
    verdict = story.judged(tmp_path, LOSING)
    assert failed(verdict) == set()
    assert [word(verdict, name) for name in ("lost", "twice_unsafe", "same_while_live")] == ["lost"] * 3


@pytest.mark.parametrize("break_it", [doubled_keyed, done_for_nobody, succeeded_without_an_effect, two_ids_for_one_key])
def test_what_no_loss_excuses_fails_a_losing_run_too(break_it: Callable[[Story], None], tmp_path: Path) -> None:
    story = losing()
    break_it(story)
    assert failed(story.judged(tmp_path, LOSING)) == BROKEN[break_it]


def losing() -> Story:
    """A gate move is lost at 30; the gate reads drain until a person opens it at 34."""
    story = Story()
    story.deeds += [deed(30, "kill", "queue-server", lost_gate=True), deed(34, "order", "open")]
    story.gate = [gate(29, "drain"), gate(31, ""), gate(32, "drain"), gate(33, "drain", "control_data_lost")]
    story.gate.append(gate(35, "admit"))
    return story


def test_a_gate_that_stays_shut_after_control_data_was_lost_passes(tmp_path: Path) -> None:
    verdict = losing().judged(tmp_path, LOSING)
    assert failed(verdict) == set()
    assert word(verdict, "stays_shut") == "kept"


@pytest.mark.parametrize("state", ["admit", "reject_new", "recovering"])
def test_a_gate_that_reads_anything_but_drain_before_a_person_came_fails(state: str, tmp_path: Path) -> None:
    story = losing()
    story.gate.append(gate(33.5, state, "control_data_lost"))
    assert failed(story.judged(tmp_path, LOSING)) == {"stays_shut"}


def test_a_job_admitted_after_control_data_was_lost_fails(tmp_path: Path) -> None:
    story = losing()
    story.asked(0, "g", 32.0, 32.1, accepted())
    story.asked(1, "g", 32.0, 32.2, accepted(replayed=True))
    story.seen("g", "expired")
    assert failed(story.judged(tmp_path, LOSING)) == {"stays_shut"}


def test_a_loss_of_control_data_that_nobody_is_told_of_fails(tmp_path: Path) -> None:
    story = losing()
    story.gate = [gate(32, "drain"), gate(35, "admit")]
    assert failed(story.judged(tmp_path, LOSING)) == {"stays_shut"}


def test_a_run_that_lost_no_control_data_proves_nothing_of_it(tmp_path: Path) -> None:
    assert failed(Story().judged(tmp_path, LOSING)) == {"stays_shut"}


def test_a_run_without_a_refusal_proves_nothing_of_refusals(tmp_path: Path) -> None:
    kept = Story()
    kept.callers = [[], []]
    kept.asked(0, "a", 1.0, 1.1, accepted())
    kept.asked(1, "a", 1.0, 1.1, accepted(replayed=True))
    kept.seen("a", "succeeded")
    kept.provider = kept.provider[:1]
    verdict = kept.judged(tmp_path)
    assert {"same_while_live", "conflicts", "twice_unsafe"} <= failed(verdict)
    assert word(verdict, "same_while_live") == "NOT LOOKED AT"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("caller-0", '{"kind": "asked", "as'),
        ("caller-0", "[]"),
        ("caller-0", '{"kind": "answered", "ask": 999, "at": 1}'),
        ("caller-0", '{"kind": "asked", "ask": 1, "at": 1}'),
        ("caller-0", '{"kind": "guessed", "ask": 999, "at": 1}'),
        ("caller-0", '{"kind": "asked", "ask": 999, "at": 1}'),
        ("provider", '{"ts": "soon", "key": "a", "effect": 1, "class": "some", "canary": false}'),
        ("gate", '{"at": 1}'),
        ("deeds", '{"at": 1, "what": "kill"}'),
    ],
)
def test_a_log_that_can_not_be_read_is_refused_with_its_place(log: str, line: str, tmp_path: Path) -> None:
    path = Story().write(tmp_path) / f"{log}.jsonl"
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(BadLog, match=rf"^{log}(\.jsonl|:)"):
        read_logs(tmp_path)


@pytest.mark.parametrize("missing", ["caller-*", "provider", "gate", "deeds"])
def test_a_missing_log_is_refused(missing: str, tmp_path: Path) -> None:
    for path in Story().write(tmp_path).glob(f"{missing}.jsonl"):
        path.unlink()
    with pytest.raises(BadLog):
        read_logs(tmp_path)
