"""Drive the machine, and after each command compare every exported figure with what the records say by brute force."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import redis

from sluicegate import functions, observed
from sluicegate.contract import Contract
from sluicegate.telemetry import Telemetry
from tests.brute_force import BruteForce, differences, read_plainly
from tests.exported import add_reader, page_of, reader
from tests.machine.clock import KEY, with_clock
from tests.machine.driver import Driver, Lab
from tests.machine.dump import Dump


class ClockedReader:
    """Read a queue by the exporter's own script, under its own user, at the time of the machine's clock."""

    def __init__(self, client: Any, url: str, source: str) -> None:
        add_reader(client, "default", extra=(f"%R~{KEY}",))
        self._client = reader(url)
        # What is planted in the library is planted in the script: both have the same source.
        body = source.partition("\n")[2].partition("\nredis.register_function(")[0]
        script = functions.script("observe", read_only=True)
        assert functions.body() in script
        self._script = with_clock(script.replace(functions.body(), body))

    def observe(self) -> Telemetry:
        answer = self._client.execute_command("EVAL_RO", self._script, 1, "control:gate", "", "0")
        return observed.telemetry(answer, "default")

    def close(self) -> None:
        self._client.close()


@dataclass
class FiguresLab(Lab):
    """Hold a server with the exporter's reader, and how often each figure was seen to be other than 0."""

    reader: ClockedReader = field(default=None)  # type: ignore[assignment]  # made together with the client
    seen: Counter[str] = field(default_factory=Counter)
    compared: int = 0

    @classmethod
    def on(cls, url: str, source: str) -> Self:
        client: Any = redis.Redis.from_url(url, decode_responses=True)
        client.function_load(with_clock(source), replace=True)
        return cls(client, Path(tempfile.mkdtemp()), reader=ClockedReader(client, url, source))

    def close(self) -> None:
        self.reader.close()
        super().close()


class FiguresDriver(Driver):
    """Compare the figures after every command, wait and hand edit, on top of what the driver checks."""

    def __init__(self, lab: Lab, contract: Contract) -> None:
        assert isinstance(lab, FiguresLab)
        self._figures_lab = lab
        super().__init__(lab, contract)

    def _read(self) -> Dump:
        dump = super()._read()
        lab = self._figures_lab
        truth = BruteForce(read_plainly(self._client), self.clock.now_ms)
        telemetry = lab.reader.observe()
        assert telemetry.damaged == frozenset()
        shown = page_of(telemetry)
        assert differences(shown, truth.page()) == {}
        assert sorted(truth.indexed()) == sorted(truth.live()), "the indexes do not hold each live job once"
        lab.seen.update(name[0] for name, value in shown.items() if value)
        lab.compared += 1
        return dump
