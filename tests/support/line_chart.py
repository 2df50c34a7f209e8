"""Curves over time as one SVG; docs/adr/0007 states why no library draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 250, 52, 40
COLORS = ("#d9480f", "#1864ab", "#2b8a3e", "#e6a100", "#7048e8", "#8a8f98")
LABEL_CHARS = 30
"""Of a label's line: more do not fit beside the chart."""
STEPS = (1, 2, 5)
"""Times a power of ten: distances of grid lines that people read without thinking."""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its label and its points (seconds, value)."""

    label: str
    points: Sequence[tuple[float, float]]


def draw(title: str, lines: Sequence[Line], *, unit: str, marks: Sequence[tuple[float, str]] = ()) -> str:
    """Return SVG text: values in `unit` from zero on, over minutes; marks are vertical lines at a second."""
    points = [point for line in lines for point in line.points]
    last_s = max((at for at, _ in points), default=1.0) or 1.0
    most = max((value for _, value in points), default=1.0) or 1.0

    def x(at_s: float) -> float:
        return LEFT + at_s / last_s * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)

    parts = [grid_line(y(value), f"{value:,g}") for value in _grid(most)]
    parts.append(f'<text x="{LEFT - 8}" y="{TOP - 8}" text-anchor="end">{escape(unit)}</text>')
    parts += [
        f'<text x="{x(60 * minute):.1f}" y="{HEIGHT - 16}" text-anchor="middle">{minute:g} min</text>'
        for minute in _grid(last_s / 60)
    ]
    parts += [
        f'<line x1="{x(at_s):.1f}" x2="{x(at_s):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#8a8f98" '
        f'stroke-dasharray="3 4"/><text x="{x(at_s) + 4:.1f}" y="{TOP + 10}">{escape(text)}</text>'
        for at_s, text in marks
    ]
    below = TOP + 8
    for index, line in enumerate(lines):
        style = f'stroke="{COLORS[index % len(COLORS)]}" stroke-width="2"'
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in line.points)
        parts += [f'<polyline points="{path}" fill="none" {style}/>', legend(below, line.label, style)]
        below += 8 + 14 * len(wrap(line.label, LABEL_CHARS))
    return frame(title, parts)


def frame(title: str, parts: Sequence[str]) -> str:
    """Return the SVG text of a chart with these parts."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
        '<rect width="100%" height="100%" fill="white"/>'
        f'<text x="{LEFT}" y="28" font-size="16" font-weight="bold">{escape(title)}</text>{"".join(parts)}</svg>\n'
    )


def grid_line(y: float, label: str, *, right: int = RIGHT) -> str:
    """Return a horizontal line with a label to its left."""
    return (
        f'<line x1="{LEFT}" x2="{WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>'
        f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    )


def legend(y: float, label: str, style: str, *, right: int = RIGHT) -> str:
    """Return the entry of one curve, to the right of the chart, in as many lines as it needs."""
    x = WIDTH - right + 48
    text = "".join(
        f'<tspan x="{x}" dy="{14 if number else 0}">{escape(part)}</tspan>'
        for number, part in enumerate(wrap(label, LABEL_CHARS))
    )
    return (
        f'<line x1="{WIDTH - right + 16}" x2="{WIDTH - right + 40}" y1="{y}" y2="{y}" {style}/>'
        f'<text x="{x}" y="{y + 4}">{text}</text>'
    )


def _grid(most: float) -> list[float]:
    """Return about five round values from zero to `most`."""
    power = 10.0 ** len(str(int(most)))
    distances = (factor * power / 10**lower for lower in range(4, 0, -1) for factor in STEPS)
    distance = next(one for one in distances if most / one <= 6)
    return [number * distance for number in range(int(most / distance) + 1)]
