"""Ports for processes that are started again and again on the same one."""

from __future__ import annotations

from pathlib import Path

from drill.ports import lasting_port, listening_socket


def test_a_lasting_port_is_free_untaken_and_never_given_to_an_outgoing_connection() -> None:
    first, last = (int(text) for text in Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    taken: set[int] = set()
    for _ in range(20):
        port = lasting_port(taken)
        assert port not in taken
        assert not first <= port <= last
        with listening_socket(port):
            assert lasting_port(taken) != port, "somebody listens on it"
        taken.add(port)
