"""Write numbers, durations and selectors as Prometheus 2.42 reads them."""

from __future__ import annotations

from collections.abc import Mapping


def number(value: float) -> str:
    """Write a figure without a tail of rounding, and without an exponent: 20, 0.05, 4.8."""
    text = f"{value:.12g}"
    return f"{value:.12f}".rstrip("0").rstrip(".") if "e-" in text else text


def duration(seconds: float) -> str:
    """Write seconds as a Prometheus duration; it knows no fractions, so what is no whole second is in ms."""
    ms = round(seconds * 1000)
    return f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms"


def matchers(labels: Mapping[str, str]) -> str:
    """Write equality matchers as they stand between the braces."""
    return ",".join(f'{name}="{escape(value)}"' for name, value in labels.items())


def escape(value: str) -> str:
    """Escape a label value for a double-quoted PromQL string."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
