"""Say which parts a drill starts: those that its scenario needs, so that a short one is short."""

from __future__ import annotations

from dataclasses import dataclass

from drill.profile import Profile
from drill.server import ServerKind

WORKERS = ("worker-1", "worker-2", "worker-3")


@dataclass(frozen=True, slots=True)
class Needs:
    """Name what a scenario needs beside the queue's server, the provider behind its proxy, and the automation."""

    exporter: bool = True
    monitoring: bool = True  # Prometheus and Alertmanager, which read the exporter
    api: bool = False  # `sluicegate queue serve`
    workers: tuple[str, ...] = WORKERS  # those that are there from the beginning
    fixed_by_hook: bool = True  # whether a run's fix step calls the fault proxy, or waits for a person
    append_only: bool = False  # whether the server's data survives its process


ALL_PARTS = Needs()


@dataclass(frozen=True, slots=True)
class Plan:
    """Say all that decides which parts start, and how."""

    profile: Profile
    server: ServerKind
    seed: int
    needs: Needs = ALL_PARTS
