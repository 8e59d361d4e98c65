"""The exporter's Redis user reads its queues and does nothing else."""

from __future__ import annotations

from exporter.acl import OBSERVE_COMMANDS, TRANSPORT_COMMANDS, acl_line


def test_the_line_starts_from_nothing_and_grants_reading_alone() -> None:
    words = acl_line("exporter", ("default",)).split()

    assert words[:6] == ["ACL", "SETUSER", "exporter", "reset", "on", ">PASSWORD"]
    assert "%R~drain_state" in words
    granted = {word[1:] for word in words if word.startswith("+")}
    assert granted == {*OBSERVE_COMMANDS, *TRANSPORT_COMMANDS}
    assert words.index("-@all") < min(words.index(word) for word in words if word.startswith("+"))


def test_a_queue_is_reached_under_its_own_prefix_and_its_jobs_are_not() -> None:
    patterns = [word for word in acl_line("exporter", ("nightly", "bulk")).split() if "~" in word]

    assert {pattern.split(":")[0] for pattern in patterns} == {"%R~{nightly}", "%R~{bulk}"}
    assert not [pattern for pattern in patterns if ":job" in pattern or ":idem" in pattern or pattern.endswith(":*:*")]
