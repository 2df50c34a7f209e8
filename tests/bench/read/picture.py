"""Read time by size of row groups, as one SVG; docs/adr/0007 states why no library draws it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.bench.read.row_groups import size_text

WIDTH, HEIGHT = 960, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 250, 52, 40
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

    parts = [f'<text x="{LEFT}" y="28" font-size="16" font-weight="bold">{escape(title)}</text>']
    parts += [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ratio):.1f}" y2="{y(ratio):.1f}" stroke="#e5e5e5"/>'
        f'<text x="{LEFT - 8}" y="{y(ratio) + (-2 if ratio == 1.05 else 4):.1f}" text-anchor="end">{ratio:g}</text>'
        for ratio in (1, 1.05, 1.5, 2, 2.5, 3)
    ]
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
        legend = TOP + 8 + index * 22
        parts.append(
            f'<polyline points="{path}" fill="none" clip-path="url(#frame)" {style}/>'
            f'<line x1="{WIDTH - RIGHT + 16}" x2="{WIDTH - RIGHT + 40}" y1="{legend}" y2="{legend}" {style}/>'
            f'<text x="{WIDTH - RIGHT + 48}" y="{legend + 4}">{escape(curve.label)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<clipPath id="frame"><rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
        f'height="{HEIGHT - TOP - BOTTOM + 2}"/></clipPath>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )
