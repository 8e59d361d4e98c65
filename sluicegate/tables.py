"""How are rows shown so that no cell is cut short? As columns where they fit, else line by line."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence

Row = Sequence[str]

_GAP = "  "


def terminal_width() -> int | None:
    """Give the columns of the terminal that stdout is, None where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table_lines(head: Row, rows: Sequence[Row], width: int | None) -> Iterator[str]:
    """Give a table as lines; cells are shown whole and as they are.

    For a program (`width` None) a line a row, its cells apart by tabs. For a terminal in columns, or, where the widest
    row would not fit, each row as its first cell with the others below it, each under its name.
    """
    if width is None:
        yield from ("\t".join(row) for row in (head, *rows))
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= width:
        for row in (head, *rows):
            yield _GAP.join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)).rstrip()
        return
    for first, *others in rows:
        yield first
        yield from (f"{_GAP}{name}: {cell}" for name, cell in zip(head[1:], others, strict=True) if cell)
