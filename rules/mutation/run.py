"""Judge mutants by promtool: those of one alert stand in one rule file, each under its own name, and share tests."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from rules.alert import Alert
from rules.expectation import UnitTest
from rules.generate import RULES_FILE, Group, catalogue, chain, render_rules, render_tests
from rules.mutation.mutants import Mutant, mutants
from rules.promtool import find_promtool
from rules.scope import Scope
from rules.test_sets import TestSet, by_alerts, test_sets
from sluicegate.errors import SluicegateError
from sluicegate.records import AlertName
from sluicegate.settings import Settings

_FAILED = re.compile(r"alertname: (\w+),")
# So many mutants share one rule file: more would make each test long, fewer would make many.
_BATCH = 40
_LIMIT_S = 600
LEAST_KILLED = 0.95
# Tests that expect something of more alerts than these are about all of them.
_FEW = 2
_WORKERS = 2


@dataclass(frozen=True, slots=True)
class Score:
    """Hold what became of every mutant, and how long it took."""

    killed: tuple[Mutant, ...]
    survived: tuple[Mutant, ...]
    took_s: float

    @property
    def share(self) -> float:
        """Give the share of all mutants that some test noticed."""
        return len(self.killed) / (len(self.killed) + len(self.survived))


def mutate(settings: Settings, only: Sequence[str] = ()) -> Score:
    """Mutate every alert, or those whose name holds one of these words, and run its tests on each mutant.

    Raises SluicegateError where promtool fails on an alert as it is, or can't read a mutant.
    """
    promtool, started = find_promtool(), time.monotonic()
    batches = list(_batches(settings, only))
    with tempfile.TemporaryDirectory(prefix="sluicegate-mutants-") as name, ThreadPoolExecutor(_WORKERS) as pool:
        folders = [_laid(Path(name) / str(index), settings, batch) for index, batch in enumerate(batches)]
        dead = list(pool.map(lambda folder: _failed(promtool, folder), folders))
    killed: list[Mutant] = []
    survived: list[Mutant] = []
    for batch, names in zip(batches, dead, strict=True):
        if batch.alert.name in names:
            raise SluicegateError(f"The tests of {batch.alert.name} fail on the alert as it is.")
        for title, mutant in batch.named:
            (killed if title in names else survived).append(mutant)
    return Score(tuple(killed), tuple(survived), time.monotonic() - started)


@dataclass(frozen=True, slots=True)
class Batch:
    """Hold some mutants of one alert by the names that they run under, and the alert's test sets."""

    alert: Alert
    named: tuple[tuple[str, Mutant], ...]
    sets: tuple[TestSet, ...]
    every: tuple[Alert, ...]


def _batches(settings: Settings, only: Sequence[str]) -> Iterator[Batch]:
    every = catalogue(settings)
    sets = test_sets(settings, every)
    for alert in every:
        if only and not any(word.lower() in alert.name.lower() for word in only):
            continue
        own = tuple(
            part
            for tests in sets
            for names, part in by_alerts(tests)
            if alert.name in names and (len(names) <= _FEW or alert.name == AlertName.WATCHDOG)
        )
        own = tuple(_own(tests, alert) for tests in own)
        step_s = max(tests.evaluation_s for tests in own)
        found = list(mutants(alert, chain(settings, [alert]).records, step_s))
        for start in range(0, len(found), _BATCH):
            named = tuple(
                (f"{alert.name}_{start + index}", one) for index, one in enumerate(found[start : start + _BATCH])
            )
            yield Batch(alert, named, own, every)


def _own(tests: TestSet, alert: Alert) -> TestSet:
    """Keep the alert's own tests: where another's expect something of it, it is the other that they are about."""
    watchdog = alert.name == AlertName.WATCHDOG
    return replace(
        tests, tests=tuple(test for test in tests.tests if watchdog or test.name.startswith(f"{alert.name},"))
    )


def _laid(folder: Path, settings: Settings, batch: Batch) -> list[Path]:
    """Write the rule file with the alert and its mutants, and the tests that expect the same of each of them."""
    folder.mkdir()
    beside = {one.alert.name for tests in batch.sets for test in tests.tests for one in test.expectations}
    among = _group(settings, batch, [one for one in batch.every if one.name in beside | {batch.alert.name}])
    (folder / RULES_FILE).write_text(_rules(settings, batch, among), encoding="utf-8")
    paths = []
    for number, tests in enumerate(batch.sets):
        path = folder / f"{number}.test.yml"
        widened = replace(tests, tests=tuple(_widened(test, batch) for test in tests.tests))
        path.write_text(render_tests(settings, widened, [among]), encoding="utf-8")
        paths.append(path)
    return paths


def _group(settings: Settings, batch: Batch, alerts: Sequence[Alert]) -> Group:
    group = chain(settings, alerts)
    return replace(group, alerts=(*group.alerts, *(_renamed(title, one) for title, one in batch.named)))


def _renamed(title: str, mutant: Mutant) -> Alert:
    """Give the mutant under its own name; a wrong record has a name of its own, too."""
    alert = replace(mutant.alert, name=title)  # type: ignore[arg-type]  # a name that no alert has, for promtool alone
    if mutant.record is None:
        return alert
    name = mutant.record[0].name
    return replace(alert, expression=alert.expression.replace(f"{name}{{", f"{name}_{title}{{"))


def _rules(settings: Settings, batch: Batch, among: Group) -> str:
    text, scope = render_rules(settings, [among]), Scope(settings)
    wrong = "".join(
        f'      - record: "{record.name}_{title}"\n'
        f"        expr: {record.expression(scope.selector(record)).replace(record.operation.value, operation, 1)}\n"
        for title, one in batch.named
        if one.record is not None
        for record, operation in (one.record,)
    )
    return text.replace("    rules:\n", f"    rules:\n{wrong}", 1)


def _widened(test: UnitTest, batch: Batch) -> UnitTest:
    own = [one for one in test.expectations if one.alert.name == batch.alert.name]
    copies = [
        replace(one, alert=replace(batch.alert, name=title))  # type: ignore[arg-type]  # as above
        for title, _ in batch.named
        for one in own
    ]
    return replace(test, expectations=(*test.expectations, *copies))


def _failed(promtool: str, files: Sequence[Path]) -> set[str]:
    """Return the names of the alerts that some test failed on."""
    answer = subprocess.run(
        [promtool, "test", "rules", *map(str, files)], capture_output=True, text=True, check=False, timeout=_LIMIT_S
    )
    said = answer.stdout + answer.stderr
    names = set(_FAILED.findall(said))
    if answer.returncode != 0 and not names:
        raise SluicegateError(f"promtool can't run the mutants: {said.strip()[:500]}")
    return names
