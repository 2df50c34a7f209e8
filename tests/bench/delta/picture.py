"""Live files over time under every rule, as one SVG; docs/adr/0007 tells why no library draws it."""

import math
from collections.abc import Sequence

from tests.support.line_chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, frame, grid_line, legend

COLOURS = ("#8a8f98", "#d9480f", "#1864ab", "#4dabf7", "#2b8a3e", "#e6a100", "#7048e8")
"""Grey for the table left alone, the strong one for Lakewright, then the others in their order."""

DASHED_FROM = 5
"""The last curves are dashed: rules that keep the same hours lie on one another, and both shall be seen."""


def draw(title: str, curves: Sequence[tuple[str, Sequence[int]]], *, per_hour: int) -> str:
    """Return SVG text; each curve is a label and the files after each commit, `per_hour` of them an hour."""
    commits = max(len(curve) for _, curve in curves)
    top = max(10, *(max(curve) for _, curve in curves))
    # Logarithmic: rules differ by a factor of fifty, and the lowest are the interesting ones.
    decades = math.log10(top)

    def x(commit: float) -> float:
        return LEFT + commit / commits * (WIDTH - LEFT - RIGHT)

    def y(files: float) -> float:
        return HEIGHT - BOTTOM - math.log10(max(1.0, files)) / decades * (HEIGHT - TOP - BOTTOM)

    ticks = (n * 10**power for power in range(5) for n in (1, 3))
    parts = [grid_line(y(files), f"{files:,}") for files in ticks if files <= top]
    for hour in range(commits // per_hour + 1):
        at = x(hour * per_hour)
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - 16}" text-anchor="middle">{hour} h</text>')
    for index, (label, curve) in enumerate(curves):
        width = 3 if label == "Lakewright" else 1.5
        dashes = ' stroke-dasharray="7 6"' if index >= DASHED_FROM else ""
        style = f'stroke="{COLOURS[index % len(COLOURS)]}" stroke-width="{width}"{dashes}'
        path = " ".join(f"{x(commit):.1f},{y(files):.1f}" for commit, files in enumerate(curve, 1))
        parts += [f'<polyline points="{path}" fill="none" {style}/>', legend(TOP + 8 + index * 22, label, style)]
    return frame(title, parts)
