"""Live files over time under every rule, as one SVG; docs/adr/0007 tells why no library draws it."""

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 250, 52, 40
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

    parts = [f'<text x="{LEFT}" y="28" font-size="16" font-weight="bold">{escape(title)}</text>']
    parts += [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(files):.1f}" y2="{y(files):.1f}" stroke="#e5e5e5"/>'
        f'<text x="{LEFT - 8}" y="{y(files) + 4:.1f}" text-anchor="end">{files:,}</text>'
        for files in (n * 10**power for power in range(5) for n in (1, 3))
        if files <= top
    ]
    for hour in range(commits // per_hour + 1):
        at = x(hour * per_hour)
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - 16}" text-anchor="middle">{hour} h</text>')
    for index, (label, curve) in enumerate(curves):
        colour = COLOURS[index % len(COLOURS)]
        width = 3 if label == "Lakewright" else 1.5
        dashes = ' stroke-dasharray="7 6"' if index >= DASHED_FROM else ""
        path = " ".join(f"{x(commit):.1f},{y(files):.1f}" for commit, files in enumerate(curve, 1))
        legend = TOP + 8 + index * 22
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'
            f'<line x1="{WIDTH - RIGHT + 16}" x2="{WIDTH - RIGHT + 40}" y1="{legend}" y2="{legend}" '
            f'stroke="{colour}" stroke-width="{width}"{dashes}/>'
            f'<text x="{WIDTH - RIGHT + 48}" y="{legend + 4}">{escape(label)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )
