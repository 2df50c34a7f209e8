"""Rewriting and reading over time under several rules, as one SVG; docs/adr/0007 states why no library draws it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from xml.sax.saxutils import escape

from tests.support.line_chart import COLORS, LEFT, WIDTH, legend

HEIGHT = 640
RIGHT = 250
PANEL = 230
"""Height of one chart; there are two, one above the other."""

Points = Sequence[tuple[float, float]]


class Played(Protocol):
    """What one rule did, by the number of a commit."""

    @property
    def cost_curve(self) -> Points:
        """Targets that each run rewrote."""

    @property
    def read_curve(self) -> Points:
        """Bytes that ranges read, over OPTIMIZE's layout."""


def draw(title: str, played: Mapping[str, Played], commits: int) -> str:
    """Return SVG text: what each run costs, on a logarithmic scale, and what ranges read."""
    costs, reads = ({name: getattr(one, of) for name, one in played.items()} for of in ("cost_curve", "read_curve"))
    most = max((cost for points in costs.values() for _, cost in points), default=1)
    highest = max((read for points in reads.values() for _, read in points), default=1)
    top, bottom = 74, 74 + PANEL + 66
    grid = [10**power for power in range(math.ceil(math.log10(most)) + 1)]

    def cost_y(cost: float) -> float:
        return top + PANEL * (1 - math.log10(max(cost, 0.5) * 2) / math.log10(grid[-1] * 2))

    def read_y(read: float) -> float:
        return bottom + PANEL * (1 - read / math.ceil(highest))

    parts = [
        _panel("targets rewritten by each run", top, cost_y, grid, commits),
        _panel(
            "bytes that ranges read, over OPTIMIZE's layout", bottom, read_y, range(math.ceil(highest) + 1), commits
        ),
    ]
    for at, name in enumerate(costs):
        style = f'stroke="{COLORS[at]}" stroke-width="2"'
        dots = "".join(
            f'<circle cx="{_x(commit, commits):.1f}" cy="{cost_y(cost):.1f}" r="2.5"/>' for commit, cost in costs[name]
        )
        line = " ".join(f"{_x(commit, commits):.1f},{read_y(read):.1f}" for commit, read in reads[name])
        parts += [
            f'<g fill="{COLORS[at]}" fill-opacity="0.6">{dots}</g>',
            f'<polyline points="{line}" fill="none" {style}/>',
            legend(top + 8 + at * 22, name, style, right=RIGHT),
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="white"/><text x="{LEFT}" y="28" font-size="16" font-weight="bold">'
        f"{escape(title)}</text>{''.join(parts)}</svg>\n"
    )


def _panel(title: str, top: int, y: Callable[[float], float], grid: Sequence[int], commits: int) -> str:
    lines = "".join(
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#e5e5e5"/>'
        f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
        for value in grid
    )
    marks = "".join(
        f'<text x="{_x(at, commits):.1f}" y="{top + PANEL + 20}" text-anchor="middle">{at:,.0f} commits</text>'
        for at in (commits / 4, commits / 2, commits * 3 / 4, commits)
    )
    return f'<text x="{LEFT}" y="{top - 12}" font-weight="bold">{escape(title)}</text>{lines}{marks}'


def _x(commit: float, commits: int) -> float:
    return LEFT + commit / commits * (WIDTH - LEFT - RIGHT)
