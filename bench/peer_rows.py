"""Turn rounds beside the peers into rows: ours against the best of them in the same round. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from bench.rows import Row
from bench.side_by_side import Figures, Measured

Figure = Callable[[Figures], float]
# Every peer acknowledges a job after its work, in the mode in which it is measured.


def _against(
    ours: Measured, peers: Sequence[Measured], figure: Figure, best: Callable[[list[float]], float]
) -> list[float]:
    ratios = []
    for number, mine in enumerate(ours.rounds):
        others = [figure(peer.rounds[number]) for peer in peers if len(peer.rounds) > number]
        if others:
            ratios.append(figure(mine) / best(others))
    return ratios


def _middle(measured: Measured, figure: Figure) -> float:
    return median(figure(one) for one in measured.rounds)


def _note(ours: Measured, peers: Sequence[Measured], figure: Figure, unit: str, *, more: bool) -> str:
    """Name ours and the best peers, best first."""
    ran = [peer for peer in peers if peer.rounds]
    ranked = sorted(ran, key=lambda peer: _middle(peer, figure), reverse=more)
    named = ", ".join(f"{peer.name} {_middle(peer, figure):.4g}" for peer in ranked[:3])
    return f"ours {_middle(ours, figure):.4g} {unit}; {named}"


def peer_rows(ours: Measured, peers: Sequence[Measured]) -> list[Row]:
    """Give the five rows that are held against peers."""

    def row(name: str, figure: Figure, unit: str, best: Callable[[list[float]], float], target: float) -> Row:
        more = best is max
        against = {max: "fastest peer", min: "best peer", median: "median peer"}[best]
        samples = _against(ours, peers, figure, best)
        note = _note(ours, peers, figure, unit, more=more) if samples else "no peer ran"
        return Row(name, samples, f"× {against}", target, more, note)

    return [
        row("submit_peers", lambda one: one.enqueue, "jobs/s", max, 4.0),
        row("end_to_end", lambda one: one.end_to_end, "jobs/s", max, 6.0),
        row("worker_cpu", lambda one: one.worker_us, "µs", min, 0.2),
        row("pick_up", lambda one: one.pick_up_ms, "ms", min, 0.8),
        row("bytes", lambda one: one.bytes_a_job, "B", median, 2.0),
    ]


_COLUMNS: Sequence[tuple[str, str, Callable[[Figures], float | None]]] = (
    ("one at a time", "jobs/s", lambda one: one.one_by_one),
    ("50 callers", "jobs/s", lambda one: one.at_once),
    ("end to end", "jobs/s", lambda one: one.end_to_end),
    ("worker CPU", "µs/job", lambda one: one.worker_us),
    ("Redis CPU", "µs/job", lambda one: one.server_us),
    ("pick-up", "ms", lambda one: one.pick_up_ms),
    ("bytes", "B/job", lambda one: one.bytes_a_job),
)


def peer_json(measured: Measured, package: str) -> dict[str, object]:
    """Give what was found out about one subject, all samples included."""
    figures = {
        f"{name} ({unit})": [figure(one) for one in measured.rounds]
        for name, unit, figure in _COLUMNS
        if measured.rounds
    }
    return {
        "name": f"peer:{measured.name}",
        "value": None,
        "target": None,
        "met": None,
        "version": measured.installed.get(package, ""),
        "installed": dict(measured.installed),
        "figures": figures,
        "error": measured.error,
    }


def peer_lines(ours: Measured, peers: Sequence[Measured]) -> list[str]:
    """Give a table of medians with their ranges, a line a queue."""
    head = f"{'queue':<12}" + "".join(f"{f'{name}, {unit}':>26}" for name, unit, _ in _COLUMNS)
    return [head, *(_line(one) for one in (ours, *peers))]


def _line(measured: Measured) -> str:
    if measured.error:
        return f"{measured.name:<12} does not run: {measured.error}"
    cells = []
    for _, _, figure in _COLUMNS:
        samples = [value for one in measured.rounds if (value := figure(one)) is not None]
        cells.append(f"{median(samples):.4g} ({min(samples):.4g}–{max(samples):.4g})" if samples else "-")
    return f"{measured.name:<12}" + "".join(f"{cell:>26}" for cell in cells)
