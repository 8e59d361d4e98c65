"""Make the ids of runs, requests and processes."""

from __future__ import annotations

import os
import secrets
import socket
import time


def run_id() -> str:
    """Give a run's id: its UTC second and four random hex digits, so that runs sort by time."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"


def process_id(role: str) -> str:
    """Give one process's name in leases and logs: role, host, pid and a random part against reused pids."""
    return f"{role}:{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"


def request_id() -> str:
    """Give a fresh request id; a repeat of the same request keeps it."""
    return secrets.token_hex(8)
