"""Write docs/reference/lints.md from the checks."""

from __future__ import annotations

from collections.abc import Iterator

from rules.lint.checks import CHECKS
from rules.render import wrap

_HEAD = """# Lints

Generated from the checks by `sluicegate rules lints`; edit them, not this page.

`sluicegate rules lint FILE…` reads Prometheus rule files, or PrometheusRules, and asks no server. It ends with exit
code 1 where it refuses something. A rule that may says so in a comment above it or inside it, with the reason:

```yaml
# sluicegate: allow alert-comparison it fires always: its silence is what is heard
```
"""


def reference() -> str:
    """Give the page."""
    return "\n".join((_HEAD, *_sections()))


def _sections() -> Iterator[str]:
    for check in CHECKS:
        yield f"## {check.name}\n\n{wrap(check.says)}\n"
        yield f"| refused | allowed |\n|---|---|\n| {_cell(check.refused)} | {_cell(check.allowed)} |\n"


def _cell(text: str) -> str:
    return f"`{text.replace('`', '')}`".replace("|", "\\|")
