"""The exporter's Redis user reads its queues and does nothing else."""

from __future__ import annotations

from exporter.acl import OBSERVE_COMMANDS, TRANSPORT_COMMANDS, acl_line


def test_the_line_starts_from_nothing_and_grants_reading_alone() -> None:
    words = acl_line("exporter", ("default",)).split()

    assert words[:6] == ["ACL", "SETUSER", "exporter", "reset", "on", ">PASSWORD"]
    assert "%R~*" in words
    granted = {word[1:] for word in words if word.startswith("+")}
    assert granted == {*OBSERVE_COMMANDS, *TRANSPORT_COMMANDS}
    assert words.index("-@all") < min(words.index(word) for word in words if word.startswith("+"))


def test_a_named_queue_is_reached_under_its_own_prefix_only() -> None:
    words = acl_line("exporter", ("nightly", "bulk")).split()

    assert [word for word in words if "~" in word] == ["%R~{nightly}:*", "%R~{bulk}:*"]
