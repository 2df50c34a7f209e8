"""Read time by size of row groups, as one SVG; docs/adr/0007 states why no library draws it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.read.row_groups import size_text
from tests.support.line_chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, frame, grid_line, legend

COLORS = ("#d9480f", "#1864ab", "#2b8a3e", "#7048e8", "#8a8f98")
MOST = 3.0
"""Times beyond three times the best leave the frame: what matters is where a curve becomes flat."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One reader's times by size in bytes, relative to its best; curves of one color belong to one reader."""

    label: str
    ratios: Mapping[int, float]
    color: int
    is_dashed: bool = False


def draw(title: str, curves: Sequence[Curve], *, floor_bytes: int) -> str:
    """Return SVG text; the vertical line is the size that the setting requires."""
    sizes = sorted({size for curve in curves for size in curve.ratios})
    least, most = math.log2(sizes[0]), math.log2(sizes[-1])

    def x(size: float) -> float:
        return LEFT + (math.log2(size) - least) / (most - least) * (WIDTH - LEFT - RIGHT)

    def y(ratio: float) -> float:
        return HEIGHT - BOTTOM - (ratio - 1) / (MOST - 1) * (HEIGHT - TOP - BOTTOM)

    inside = f'x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM + 2}"'
    parts = [f'<clipPath id="frame"><rect {inside}/></clipPath>']
    parts += [grid_line(y(ratio), f"{ratio:g}") for ratio in (1, 1.5, 2, 2.5, 3)]
    parts.append(grid_line(y(1.05), ""))
    parts.append(f'<text x="{LEFT - 8}" y="{y(1.05) - 2:.1f}" text-anchor="end">1.05</text>')
    parts += [
        f'<text x="{x(size):.1f}" y="{HEIGHT - 16}" text-anchor="middle">{size_text(size)}</text>' for size in sizes
    ]
    parts.append(
        f'<line x1="{x(floor_bytes):.1f}" x2="{x(floor_bytes):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" '
        f'stroke="#e6a100" stroke-width="2"/><text x="{x(floor_bytes) + 4:.1f}" y="{TOP + 10}">setting</text>'
    )
    for index, curve in enumerate(curves):
        style = f'stroke="{COLORS[curve.color]}" stroke-width="2"' + (' stroke-dasharray="7 6"' * curve.is_dashed)
        path = " ".join(f"{x(size):.1f},{y(ratio):.1f}" for size, ratio in sorted(curve.ratios.items()))
        parts += [
            f'<polyline points="{path}" fill="none" clip-path="url(#frame)" {style}/>',
            legend(TOP + 8 + index * 22, curve.label, style),
        ]
    return frame(title, parts)
