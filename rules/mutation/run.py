"""Judge mutants by promtool: those of one alert stand in one rule file, each under its own name, and share tests.

Short tests come first, and what one of them has killed no longer one is run on.
"""

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
from rules.render import single_quoted
from rules.scope import Scope
from rules.test_sets import TestSet, test_sets
from sluicegate.errors import SluicegateError, UsageError
from sluicegate.records import AlertName, Record
from sluicegate.settings import Settings

_FAILED = re.compile(r"alertname: (\w+),")
# So many mutants share one rule file: more would make each test long, fewer would make many.
_BATCH = 40
# So many of the shortest tests come first, and twice as many each time after.
_FIRST = 3
_LIMIT_S = 600
LEAST_KILLED = 0.95
_WORKERS = 2
Named = tuple[str, Mutant]


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

    Raises UsageError where no alert has such a name, and SluicegateError where promtool fails on an alert as it is, or
    can't read a mutant.
    """
    promtool, started = find_promtool(), time.monotonic()
    every = catalogue(settings)
    sets = test_sets(settings, every)
    alerts = [one for one in every if not only or any(word.lower() in one.name.lower() for word in only)]
    if not alerts:
        raise UsageError(
            f"No alert's name holds {' or '.join(map(repr, only))}.", "`sluicegate rules show` lists them."
        )
    with tempfile.TemporaryDirectory(prefix="sluicegate-mutants-") as name, ThreadPoolExecutor(_WORKERS) as pool:
        trials = [Trial(settings, alert, sets, promtool, Path(name) / alert.name) for alert in alerts]
        # The longest first, so that no worker is left alone with it.
        trials.sort(key=lambda trial: -len(trial.every) * trial.steps)
        left = set().union(*pool.map(Trial.run, trials))
    tried = [pair for trial in sorted(trials, key=lambda trial: alerts.index(trial.alert)) for pair in trial.every]
    killed = tuple(mutant for title, mutant in tried if title not in left)
    survived = tuple(mutant for title, mutant in tried if title in left)
    return Score(killed, survived, time.monotonic() - started)


class Trial:
    """Try the mutants of one alert: `every` is each of them by the name that it runs under."""

    def __init__(self, settings: Settings, alert: Alert, sets: Sequence[TestSet], promtool: str, folder: Path) -> None:
        self._settings = settings
        self.alert = alert
        self._promtool = promtool
        self._folder = folder
        own = ((tests, test) for tests in sets for test in tests.tests if _is_about(test, alert))
        self._tests = sorted(own, key=lambda pair: _steps(*pair))
        step_s = max(tests.evaluation_s for tests, _ in self._tests)
        found = mutants(alert, chain(settings, [alert]).records, step_s)
        self.every: tuple[Named, ...] = tuple((f"{alert.name}_{index}", one) for index, one in enumerate(found))

    @property
    def steps(self) -> float:
        """Count the evaluations of all tests."""
        return sum(_steps(*pair) for pair in self._tests)

    def run(self) -> set[str]:
        """Run the tests, and return the names of the mutants that no test has noticed."""
        left = list(self.every)
        for number, tests in enumerate(self._rounds()):
            dead = set[str]()
            for index, batch in enumerate(left[at : at + _BATCH] for at in range(0, len(left), _BATCH)):
                dead |= self._failed(self._laid(f"{number}-{index}", tests, batch))
            if self.alert.name in dead:
                raise SluicegateError(f"The tests of {self.alert.name} fail on the alert as it is.")
            left = [(title, mutant) for title, mutant in left if title not in dead]
        return {title for title, _ in left}

    def _rounds(self) -> Iterator[list[tuple[TestSet, UnitTest]]]:
        start, size = 0, _FIRST
        while start < len(self._tests):
            yield self._tests[start : start + size]
            start, size = start + size, size * 2

    def _laid(self, name: str, tests: Sequence[tuple[TestSet, UnitTest]], batch: Sequence[Named]) -> list[Path]:
        """Write the rule file with the alert and its mutants, and the tests that expect the same of each of them."""
        folder = self._folder / name
        folder.mkdir(parents=True)
        group = chain(self._settings, [self.alert])
        group = replace(group, alerts=(*group.alerts, *(_renamed(title, one) for title, one in batch)))
        (folder / RULES_FILE).write_text(_rules(self._settings, group, batch), encoding="utf-8")
        paths = []
        for pace in {of.file: of for of, _ in tests}.values():
            own = replace(pace, tests=tuple(self._widened(test, batch) for of, test in tests if of is pace))
            paths.append(folder / pace.file)
            paths[-1].write_text(render_tests(self._settings, own, [group]), encoding="utf-8")
        return paths

    def _widened(self, test: UnitTest, batch: Sequence[Named]) -> UnitTest:
        own = [one for one in test.expectations if one.alert.name == self.alert.name]
        copies = [
            replace(one, alert=replace(self.alert, name=title))  # type: ignore[arg-type]  # as in _renamed
            for title, _ in batch
            for one in own
        ]
        return replace(test, expectations=(*own, *copies))

    def _failed(self, files: Sequence[Path]) -> set[str]:
        """Return the names of the alerts that some test failed on."""
        answer = subprocess.run(
            [self._promtool, "test", "rules", *map(str, files)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
        said = answer.stdout + answer.stderr
        names = set(_FAILED.findall(said))
        if answer.returncode != 0 and not names:
            raise SluicegateError(f"promtool can't run the mutants: {said.strip()[:500]}")
        return names


def _is_about(test: UnitTest, alert: Alert) -> bool:
    """Say whether a test is the alert's own: the watchdog has none, it is heard in those about all of them."""
    if alert.name == AlertName.WATCHDOG:
        return any(one.alert.name == alert.name for one in test.expectations)
    return test.name.startswith(f"{alert.name},")


def _steps(tests: TestSet, test: UnitTest) -> float:
    return max(one.at_s for one in test.expectations) / tests.evaluation_s


def _renamed(title: str, mutant: Mutant) -> Alert:
    """Give the mutant under its own name; a wrong record has a name of its own, too."""
    alert = replace(mutant.alert, name=title)  # type: ignore[arg-type]  # a name that no alert has, for promtool alone
    if mutant.record is None:
        return alert
    name = mutant.record[0].name
    return replace(alert, expression=alert.expression.replace(f"{name}{{", f"{name}_{title}{{"))


def _rules(settings: Settings, group: Group, batch: Sequence[Named]) -> str:
    text, scope = render_rules(settings, [group]), Scope(settings)
    wrong = "".join(
        f'      - record: "{record.name}_{title}"\n        expr: {_quoted(record, scope.selector(record), operation)}\n'
        for title, one in batch
        if one.record is not None
        for record, operation in (one.record,)
    )
    return text.replace("    rules:\n", f"    rules:\n{wrong}", 1)


def _quoted(record: Record, selector: str, operation: str) -> str:
    return single_quoted(record.expression(selector).replace(record.operation.value, operation, 1))
