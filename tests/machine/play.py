"""Run the machine on one server, as long as asked."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.machine.census import Census
from tests.machine.driver import Driver, Lab
from tests.machine.rules import QueueMachine

EXAMPLES = 20
STEPS = 20
# The environment's name for how many runs of a new seed to play.
LONGER = "MACHINE_EXAMPLES"


@dataclass(frozen=True)
class Length:
    """Say how many runs of how many rules; `drawn_anew` takes another seed each time, and `seed` a chosen one.

    Shrinking a failing run takes minutes, so it is left to whoever looks for its cause.
    """

    examples: int = EXAMPLES
    steps: int = STEPS
    drawn_anew: bool = False
    shrinks: bool = False
    seed: int = 0


def play(url: str, source: str, length: Length) -> Census:
    """Run the machine against a library's source; raises what the first run that fails raises, shrunk if asked."""
    lab = Lab.on(url, source)
    try:
        play_on(lab, Driver, length)
    finally:
        lab.close()
    return lab.census


def play_on(lab: Lab, driver: type[Driver], length: Length) -> None:
    """Run the machine on a server, with what checks each command; raises as `play` does."""
    machine = type("QueueMachine", (QueueMachine,), {"lab": lab, "driver": driver})
    if length.seed:
        machine = seed(length.seed)(machine)
    phases = (Phase.generate, Phase.shrink) if length.shrinks else (Phase.generate,)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=length.examples,
            stateful_step_count=length.steps,
            derandomize=not (length.drawn_anew or length.seed),
            database=None,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=length.drawn_anew,
        ),
    )
