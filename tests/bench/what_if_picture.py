"""A what-if as one SVG picture: `lakewright --json what-if TABLE | python -m tests.bench.what_if_picture >FILE`.

It shows what each rule would have done, and cost, by day and by night. Drawn by hand, because it is four charts of
straight lines under one legend (docs/adr/0007).
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

from services.cli.render import counted, mean, size, time_span

WIDTH, HEIGHT = 1000, 820
PANEL_WIDTH, PANEL_HEIGHT = 480, 300
HEAD = 148
"""Height of the title and the legend."""

LEFT, RIGHT, TOP, BOTTOM = 76, 20, 44, 46
"""Margins of one chart around its axes."""

LOG_FROM = 12
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""

MAX_TICKS = 7
"""Labels on one axis at most: more of them would touch."""

DAY_COLOURS = (
    "#8a8f98",
    "#d9480f",
    "#1864ab",
    "#4dabf7",
    "#0b7285",
    "#2b8a3e",
    "#e6a100",
    "#c2255c",
    "#7048e8",
    "#5c940d",
)
"""Grey for the table left alone, the strong one for Lakewright, then the others in their order, the last for --set."""

NIGHT_COLOURS = (
    "#868e96",
    "#ff8a4c",
    "#74a9ff",
    "#a5d8ff",
    "#3bc9db",
    "#69db7c",
    "#ffd43b",
    "#f783ac",
    "#b197fc",
    "#c0eb75",
)

HOUR_S = 3_600
TIME_STEPS_S = (
    1,
    5,
    15,
    60,
    300,
    900,
    1_800,
    HOUR_S,
    3 * HOUR_S,
    6 * HOUR_S,
    12 * HOUR_S,
    *(n * 86_400 for n in (1, 2, 5)),
)
TIME_STEPS_S += tuple(n * 86_400 for n in (10, 25, 50, 100, 250, 500, 1000))


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its range, whether it is logarithmic, and the labels of its ticks."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    label: Callable[[float], str]
    is_log: bool = False

    def share(self, value: float) -> float:
        """Return where a value lies, 0 to 1."""
        if self.is_log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def draw(answer: dict[str, Any]) -> str:
    """Return the SVG text of a what-if's answer."""
    rules = answer["rules"]
    panels = (
        ("Files in the table", _over_time(rules, 1, "files", lambda y: f"{y:,.0f}")),
        ("Bytes rewritten so far", _over_time(rules, 3, "bytes", size)),
        ("What it buys: down and left is better", _trade(rules)),
        ("Lakewright's core time by target size", _by_target(answer["recommendation"])),
    )
    body = "".join(
        f'<g transform="translate({index % 2 * (WIDTH - PANEL_WIDTH)} {HEAD + index // 2 * (PANEL_HEIGHT + 8)})">'
        f'<text class="head" x="{LEFT}" y="22">{escape(title)}</text>{chart}</g>'
        for index, (title, chart) in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12"><title>{escape(answer["location"])}</title>'
        f"<style>{_style()}</style>"
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>{_header(answer)}{body}{_footer(answer)}</svg>\n'
    )


def _style() -> str:
    day = _colours(DAY_COLOURS, paper="#ffffff", ink="#1f2328", soft="#656d76", grid="#e7e9ec")
    night = _colours(NIGHT_COLOURS, paper="#0d1117", ink="#e6edf3", soft="#9198a1", grid="#2a3038")
    shapes = (
        "polyline{fill:none;stroke-width:1.8;stroke-linejoin:round}polyline.ours{stroke-width:3.6}"
        "polyline.alone{stroke-dasharray:5 4}text.ours{font-weight:600}"
        ".title{font-size:19px;font-weight:600}.head{font-size:14px;font-weight:600}.small{font-size:11px}"
        ".grid{stroke-width:1}"
    )
    return f"{shapes}{day}@media(prefers-color-scheme:dark){{{night}}}"


def _colours(lines: Sequence[str], *, paper: str, ink: str, soft: str, grid: str) -> str:
    drawn = "".join(f".s{n}{{stroke:{colour}}}.f{n}{{fill:{colour}}}" for n, colour in enumerate(lines))
    return f"text{{fill:{ink}}}.soft{{fill:{soft}}}.paper{{fill:{paper}}}.grid{{stroke:{grid}}}{drawn}"


def _header(answer: dict[str, Any]) -> str:
    added = f"{counted(answer['commits'], 'commit')} in {time_span(answer['span_s'])} added "
    added += f"{counted(answer['files_added'], 'file')}, "
    added += f"{size(answer['bytes_added'])}; target {size(answer['policy']['target_bytes'])}"
    name = unquote(answer["location"].rstrip("/").rsplit("/", 1)[-1])
    parts = [f'<text class="title" x="24" y="34">{escape(name)}</text><text class="soft" x="24" y="54">{added}</text>']
    for index, rule in enumerate(answer["rules"]):
        x, y = 24 + index % 4 * 240, 82 + index // 4 * 22
        parts.append(
            f'<polyline class="s{_colour(index)} {_kind(index)}" points="{x},{y - 4} {x + 22},{y - 4}"/>'
            f'<text class="{_kind(index)}" x="{x + 28}" y="{y}">{escape(rule["title"])}</text>'
        )
    return "".join(parts)


def _footer(answer: dict[str, Any]) -> str:
    prices = answer["cost_model"]
    text = (
        f"Core time is assumed: {prices['write_s_per_gib']:g} s to rewrite 1 GiB; {prices['queries_per_hour']:g} "
        f"queries an hour, {prices['open_s']:g} s for each file they open, until {prices['tail_hours']:g} h after the "
        "last commit."
    )
    return f'<text class="soft small" x="24" y="{HEIGHT - 14}">{escape(text)}</text>'


def _over_time(rules: Sequence[dict[str, Any]], column: int, unit: str, label: Callable[[float], str]) -> str:
    """Draw a line for each rule; `column` is a column of the curve's points."""
    start_ms = min((rule["curve"][0][0] for rule in rules if rule["curve"]), default=0)
    lines = [[((point[0] - start_ms) / 1000, point[column]) for point in rule["curve"]] for rule in rules]
    end_s = max((x for line in lines for x, _ in line), default=0)
    if end_s <= 0:
        return '<text class="soft" x="76" y="150">All commits at one moment: nothing to see over time.</text>'
    across = _time_axis(end_s)
    up = _value_axis(unit, (y for line in lines for _, y in line), label)
    drawn = []
    for index, line in enumerate(lines):
        points = " ".join(f"{_x(across, x):.1f},{_y(up, y):.1f}" for x, y in line)
        drawn.append(f'<polyline class="s{_colour(index)} {_kind(index)}" points="{points}"/>')
    # Ours comes last, so that it lies on top.
    return _frame(across, up) + "".join(drawn[:1] + drawn[2:] + drawn[1:2])


def _trade(rules: Sequence[dict[str, Any]]) -> str:
    """Draw each rule as a dot: files that readers meet against bytes rewritten per byte added."""
    across = _value_axis(
        "files, mean over all that was replayed", (rule["files_mean"] for rule in rules), lambda x: f"{x:,.0f}"
    )
    up = _value_axis("bytes rewritten per byte added", (r["write_amplification"] for r in rules), lambda y: f"{y:.3g}")
    dots = []
    for index, rule in enumerate(rules):
        x, y = _x(across, rule["files_mean"]), _y(up, rule["write_amplification"])
        files = mean(rule["files_mean"])
        noun = "file" if files == "1" else "files"
        label = escape(f"{rule['title']}: {files} {noun}, {rule['write_amplification']:.2f} per byte")
        radius = 8 if index == 1 else 5.5
        dots.append(
            f'<circle class="f{_colour(index)}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{label}</title></circle>'
        )
    return _frame(across, up) + "".join(dots[:1] + dots[2:] + dots[1:2])


def _by_target(advice: dict[str, Any]) -> str:
    """Draw a bar for each target: reading on top of rewriting, the recommended target named."""
    curve = advice["curve"]
    highest = max((option["cost_s"] for option in curve), default=0.0) or 1.0
    up = Axis("core time", 0, highest * 1.12, _time_ticks(highest), tick)
    blank = Axis("target size", 0, 1, (), str)
    wide = (PANEL_WIDTH - LEFT - RIGHT) / max(1, len(curve))
    drawn = [_frame(blank, up)]
    for index, option in enumerate(curve):
        x = LEFT + (index + 0.2) * wide
        middle, floor = _y(up, option["write_cost_s"]), _y(up, 0)
        top = _y(up, option["cost_s"])
        is_best = advice["policy"]["enabled"] and option["target_bytes"] == advice["policy"]["target_bytes"]
        weight = ' font-weight="700"' if is_best else ""
        drawn.append(
            f'<rect class="f3" x="{x:.1f}" y="{top:.1f}" width="{0.6 * wide:.1f}" height="{middle - top:.1f}"/>'
            f'<rect class="f1" x="{x:.1f}" y="{middle:.1f}" width="{0.6 * wide:.1f}" height="{floor - middle:.1f}"/>'
            f'<text x="{x + 0.3 * wide:.1f}" y="{floor + 16:.1f}" text-anchor="middle"{weight}>'
            f"{size(option['target_bytes']).replace('.0 ', ' ')}</text>"
            f'<text class="small" x="{x + 0.3 * wide:.1f}" y="{top - 5:.1f}" text-anchor="middle"{weight}>'
            f"{time_span(option['cost_s'])}</text>"
        )
    x = PANEL_WIDTH - RIGHT - 160
    drawn.append(
        f'<rect class="f3" x="{x}" y="28" width="10" height="10"/><text class="soft small" x="{x + 15}" y="37">'
        f'reading</text><rect class="f1" x="{x + 75}" y="28" width="10" height="10"/>'
        f'<text class="soft small" x="{x + 90}" y="37">rewriting</text>'
    )
    return "".join(drawn)


def _frame(across: Axis, up: Axis) -> str:
    parts = []
    for y in up.ticks:
        at = _y(up, y)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{PANEL_WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text class="soft small" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{escape(up.label(y))}</text>'
        )
    floor = PANEL_HEIGHT - BOTTOM
    parts += [
        f'<text class="soft small" x="{_x(across, x):.1f}" y="{floor + 16}" text-anchor="middle">'
        f"{escape(across.label(x))}</text>"
        for x in across.ticks
    ]
    log = {True: ", logarithmic", False: ""}
    middle = (LEFT + PANEL_WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="soft small" x="{LEFT}" y="37">{escape(up.title)}{log[up.is_log]}</text>'
        f'<text class="soft small" x="{middle:.0f}" y="{floor + 33}" text-anchor="middle">'
        f"{escape(across.title)}{log[across.is_log]}</text>"
    )
    return "".join(parts)


def _x(axis: Axis, value: float) -> float:
    return LEFT + axis.share(value) * (PANEL_WIDTH - LEFT - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return PANEL_HEIGHT - BOTTOM - axis.share(value) * (PANEL_HEIGHT - TOP - BOTTOM)


def _colour(index: int) -> int:
    return index % len(DAY_COLOURS)


def _kind(index: int) -> str:
    """Return the class of a rule's line: the table left alone is dashed, ours is thick."""
    return {0: "alone", 1: "ours"}.get(index, "theirs")


def _time_axis(end_s: float) -> Axis:
    return Axis("time since the first commit", 0, end_s, _time_ticks(end_s), tick)


def tick(seconds: float) -> str:
    """Return a time span as an axis label: in the largest unit that it is whole quarters of, never rounded."""
    units = ((86_400, "d"), (HOUR_S, "h"), (60, "min"))
    fits = ((unit_s, unit) for unit_s, unit in units if seconds >= unit_s and 4 * seconds % unit_s == 0)
    unit_s, unit = next(fits, (1, "s"))
    return f"{seconds / unit_s:g} {unit}"


def _time_ticks(end_s: float) -> list[float]:
    step = next((step for step in TIME_STEPS_S if end_s / step < MAX_TICKS), TIME_STEPS_S[-1])
    return [step * n for n in range(int(end_s / step) + 1)]


def _value_axis(title: str, values: Iterable[float], label: Callable[[float], str]) -> Axis:
    """Return an axis over all values, logarithmic where they differ much; zeros of such an axis lie on its floor."""
    known = [value for value in values if value > 0]
    low, high = min(known, default=1.0), max(known, default=1.0)
    if high / low < LOG_FROM:
        step = _round_step(high / 5)
        return Axis(title, 0, high * 1.05, [step * n for n in range(int(high * 1.05 / step) + 1)], label)
    base = 1024 if label is size else 1000
    decades = [base**power * lead for power in range(-3, 6) for lead in (1, 10, 100)]
    finer = [decade * lead for decade in decades for lead in (1, 2, 5)]
    shown, fine = ([tick for tick in ticks if low * 0.999 <= tick <= high * 1.3] for ticks in (decades, finer))
    shown = fine if len(fine) <= MAX_TICKS else shown
    return Axis(title, low * 0.8, high * 1.3, shown[:: -(-len(shown) // MAX_TICKS) or 1], label, is_log=True)


def _round_step(wanted: float) -> float:
    """Return the nearest 1, 2 or 5 times a power of ten from `wanted` on."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(power * lead for lead in (1, 2, 5, 10) if power * lead >= wanted * 0.999)


if __name__ == "__main__":
    print(draw(json.load(sys.stdin)), end="")
