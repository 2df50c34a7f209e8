"""The curves of a what-if as one SVG file that any browser shows: files and bytes rewritten over time, cost by target.

Drawn by hand because it is three charts of straight lines: a plotting library would weigh a hundred times more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from services.cli.output import duration, size

WIDTH, HEIGHT = 960, 300
LEFT, RIGHT, TOP, BOTTOM = 80, 240, 46, 36
COLOURS = ("#999999", "#c2410c", "#1d4ed8", "#0f766e", "#7c3aed", "#a16207", "#be185d", "#4d7c0f", "#0369a1")
"""Grey for the table left alone, the strong one for Lakewright, then the others in their order."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart, in the units of its axes."""

    label: str
    points: Sequence[tuple[float, float]]


def draw(answer: dict[str, Any]) -> str:
    """Return the SVG text of a what-if's answer."""
    rules = answer["rules"]
    start_ms = min((rule["curve"][0][0] for rule in rules if rule["curve"]), default=0)
    hours = [[((at - start_ms) / 3_600_000, files, written) for at, files, _, written in r["curve"]] for r in rules]
    files = [Line(r["title"], [(h, f) for h, f, _ in points]) for r, points in zip(rules, hours, strict=True)]
    bytes_ = [Line(r["title"], [(h, w) for h, _, w in points]) for r, points in zip(rules, hours, strict=True)]
    curve = answer["recommendation"]["curve"]
    costs = [
        Line(title, [(math.log2(option["target_bytes"]), option[name]) for option in curve])
        for title, name in (("reading", "read_cost_s"), ("both", "cost_s"), ("rewriting", "write_cost_s"))
    ]
    charts = [
        _chart(
            "Files in the table, by hours since the first commit", files, lambda x: f"{x:.4g} h", lambda y: f"{y:,.0f}"
        ),
        _chart("Bytes rewritten (logarithmic)", bytes_, lambda x: f"{x:.4g} h", size, is_log=True),
        _chart("Core time by target size", costs, lambda x: size(2**x), duration),
    ]
    body = "".join(f'<g transform="translate(0 {index * HEIGHT})">{chart}</g>' for index, chart in enumerate(charts))
    height = HEIGHT * len(charts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12"><title>{escape(answer["location"])}</title>'
        f'<rect width="100%" height="100%" fill="white"/>{body}</svg>\n'
    )


def _chart(title: str, lines: Sequence[Line], x_label: Any, y_label: Any, *, is_log: bool = False) -> str:
    """Draw one chart with its axes and a legend; a logarithmic one begins at the smallest value above zero."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points if y > 0]
    low, high = (min(ys, default=1.0) if is_log else 0.0), max(ys, default=1.0)
    left, right = min(xs, default=0.0), max(xs, default=1.0)

    def across(x: float) -> float:
        return LEFT + (x - left) / (right - left or 1) * (WIDTH - LEFT - RIGHT)

    def up(y: float) -> float:
        share = math.log(max(y, low) / low) / (math.log(high / low) or 1) if is_log else y / high
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold">{escape(title)}</text>']
    for step in range(5):
        y = low * (high / low) ** (step / 4) if is_log else high * step / 4
        x = left + (right - left) * step / 4
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(y):.1f}" y2="{up(y):.1f}" stroke="#e5e5e5"/>'
            f'<text x="{LEFT - 8}" y="{up(y) + 4:.1f}" text-anchor="end">{escape(y_label(y))}</text>'
            f'<text x="{across(x):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{escape(x_label(x))}</text>'
        )
    for index, line in enumerate(lines):
        colour = COLOURS[index % len(COLOURS)]
        width = 3 if index == 1 else 1.5
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line.points)
        at = TOP + 6 + index * 20
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
            f'<line x1="{WIDTH - RIGHT + 14}" x2="{WIDTH - RIGHT + 34}" y1="{at}" y2="{at}" stroke="{colour}" '
            f'stroke-width="{width}"/><text x="{WIDTH - RIGHT + 40}" y="{at + 4}">{escape(line.label)}</text>'
        )
    return "".join(parts)
