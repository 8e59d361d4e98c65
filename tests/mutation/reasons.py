"""What no test can notice, and why: the file `reasons.yaml` beside this one.

A reason stands under the file, the function, the text of the line and the mutation: it stays with its line when lines
move, and falls when the line changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.mutation.mutants import Mutant

PATH = Path(__file__).with_name("reasons.yaml")
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Reasons:
    """Hold a reason for each mutant that may survive."""

    by_key: Mapping[Key, str]

    @classmethod
    def read(cls, path: Path = PATH) -> Reasons:
        """Read file → function → line → mutation or list of them → reason; raises ValueError where one is empty."""
        found: dict[Key, str] = {}
        for file, named in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).items():
            for function, lines in named.items():
                for text, mutations in lines.items():
                    for mutation, reason in mutations.items():
                        if not str(reason or "").strip():
                            raise ValueError(f"{file}, {function}, `{text}`, {mutation}: a survivor needs a reason.")
                        found[file, function, text, mutation] = " ".join(str(reason).split())
        return cls(found)

    def of(self, mutant: Mutant) -> str:
        """Give the reason, empty without one."""
        return self.by_key.get(mutant.key, "")

    def without_mutant(self, mutants: Iterable[Mutant]) -> list[Key]:
        """Give what is listed and exists no more."""
        keys = {mutant.key for mutant in mutants}
        return [key for key in self.by_key if key not in keys]
