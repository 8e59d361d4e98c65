"""What can go wrong with a call to the provider? One fault a file, and this table.

The names and attributes are Toxiproxy's; `status` is ours, for Toxiproxy works on bytes and knows no HTTP.
"""

from __future__ import annotations

from drill.faults.latency import Latency
from drill.faults.plan import Fault, Plan, Stream
from drill.faults.reset_peer import ResetPeer
from drill.faults.status import Status
from drill.faults.timeout import Timeout

FAULTS: dict[str, type[Fault]] = {
    "latency": Latency,
    "reset_peer": ResetPeer,
    "status": Status,
    "timeout": Timeout,
}

__all__ = ["FAULTS", "Fault", "Latency", "Plan", "ResetPeer", "Status", "Stream", "Timeout"]
