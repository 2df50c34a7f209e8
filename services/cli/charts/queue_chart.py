"""The simulation as one SVG picture that any browser shows, by day and by night: dwell per tenant, and who got what.

Each tenant has a bar for either order, from the dwell that half of its jobs stay below to the one that 95% do, on a
logarithmic axis, because the small tenants' gain is what is to be seen beside the large ones' loss.
"""

import math
from xml.sax.saxutils import escape

from services.cli.charts.simulation import ArrivalLoad, SimulatedQueue
from services.cli.render import counted

WIDTH, HEIGHT = 1000, 470
LEFT, RIGHT = 76, 712
"""Where the axis of the tenants begins and ends; Jain's index is right of it."""

TOP, FLOOR = 112, 390
JAIN_LEFT, JAIN_RIGHT = 786, 976

DAY = {
    "first": "#d9480f",
    "fair": "#1864ab",
    "paper": "#ffffff",
    "ink": "#1f2328",
    "soft": "#656d76",
    "grid": "#e7e9ec",
}
NIGHT = {
    "first": "#ff8a4c",
    "fair": "#74a9ff",
    "paper": "#0d1117",
    "ink": "#e6edf3",
    "soft": "#9198a1",
    "grid": "#2a3038",
}

ORDERS = (("first", "first come, first served"), ("fair", "fair queueing, as in Lakewright"))

MOST_LABELS = 16
"""Tenants up to which each has its number of jobs below it; more labels would touch."""


def picture(load: ArrivalLoad, first: SimulatedQueue, shared: SimulatedQueue) -> str:
    """Return the SVG text of both orders' outcomes under one load."""
    caption = f"{counted(load.jobs, 'job')} of {load.tenants} tenants by Zipf's law, {counted(load.slots, 'slot')}, "
    caption += f"{load.load:.0%} of their time needed, a job takes 1 s on average"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12"><title>Dwell by tenant</title><style>{_style()}</style>'
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<text class="title" x="24" y="34">How long a tenant\'s jobs take, from arrival to end</text>'
        f'<text class="soft" x="24" y="54">{escape(caption)}</text>{_legend()}'
        f"{_dwells(first, shared)}{_jain(first, shared)}</svg>\n"
    )


def _style() -> str:
    shapes = (
        ".title{font-size:19px;font-weight:600}.head{font-size:14px;font-weight:600}.small{font-size:11px}"
        ".span{stroke-width:5;stroke-opacity:.45}.end{stroke-width:2.5}"
    )
    return f"{shapes}{_colours(DAY)}@media(prefers-color-scheme:dark){{{_colours(NIGHT)}}}"


def _colours(of: dict[str, str]) -> str:
    orders = "".join(f".{name}{{stroke:{of[name]};fill:{of[name]}}}" for name, _ in ORDERS)
    return (
        f"text{{fill:{of['ink']}}}.soft{{fill:{of['soft']}}}.paper{{fill:{of['paper']}}}.grid{{stroke:{of['grid']}}}"
        f"{orders}"
    )


def _legend() -> str:
    parts = []
    for index, (name, words) in enumerate(ORDERS):
        x = 24 + index * 230
        parts.append(f'{_bar(name, x, x + 40, 80)}<text x="{x + 52}" y="84">{words}</text>')
    parts.append('<text class="soft small" x="532" y="84">dot: p50, half of the jobs; stroke: p95</text>')
    return "".join(parts)


def _bar(name: str, low: float, high: float, y: float) -> str:
    """Draw the legend's bar, which lies."""
    return (
        f'<line class="{name} span" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
        f'<line class="{name} end" x1="{high}" x2="{high}" y1="{y - 7}" y2="{y + 7}"/>'
        f'<circle class="{name}" cx="{low}" cy="{y}" r="3.5"/>'
    )


def _dwells(first: SimulatedQueue, shared: SimulatedQueue) -> str:
    values = [value for outcome in (first, shared) for one in outcome.dwell for value in (one.p50_s, one.p95_s)]
    low, high, ticks = _axis([value for value in values if value > 0] or [1.0])

    def y(value_s: float) -> float:
        share = math.log(max(value_s, low) / low) / math.log(high / low)
        return FLOOR - share * (FLOOR - TOP - 24)

    parts = [f'<text class="soft small" x="{LEFT}" y="{TOP}">dwell, logarithmic</text>']
    parts += [
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        f'<text class="soft small" x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:,g} s</text>'
        for tick in ticks
    ]
    wide = (RIGHT - LEFT) / len(first.dwell)
    for number, pair in enumerate(zip(first.dwell, shared.dwell, strict=True)):
        middle = LEFT + (number + 0.5) * wide
        for offset, (name, words), one in zip((-0.16, 0.16), ORDERS, pair, strict=True):
            x, half = middle + offset * wide, max(2.5, min(7.0, wide / 8))
            title = f"tenant {number + 1}, {words}: p50 {one.p50_s:.1f} s, p95 {one.p95_s:.1f} s"
            parts.append(
                f"<g><title>{title}</title>"
                f'<line class="{name} span" x1="{x:.1f}" x2="{x:.1f}" y1="{y(one.p50_s):.1f}" y2="{y(one.p95_s):.1f}"/>'
                f'<line class="{name} end" x1="{x - half:.1f}" x2="{x + half:.1f}" y1="{y(one.p95_s):.1f}" '
                f'y2="{y(one.p95_s):.1f}"/><circle class="{name}" cx="{x:.1f}" cy="{y(one.p50_s):.1f}" r="3.5"/></g>'
            )
        parts.append(_below(number, pair[0].jobs, middle, len(first.dwell)))
    parts.append(
        f'<text class="soft small" x="{(LEFT + RIGHT) / 2}" y="{FLOOR + 54}" text-anchor="middle">'
        "tenant, and how many jobs it sent</text>"
    )
    return "".join(parts)


def _below(number: int, jobs: int, middle: float, tenants: int) -> str:
    if tenants > MOST_LABELS and (number + 1) % 5 and number:
        return ""
    counted_jobs = f'<text class="soft small" x="{middle:.1f}" y="{FLOOR + 34}" text-anchor="middle">{jobs:,}</text>'
    return f'<text x="{middle:.1f}" y="{FLOOR + 18}" text-anchor="middle">{number + 1}</text>{counted_jobs}'


def _axis(values: list[float]) -> tuple[float, float, list[float]]:
    """Return the range of a logarithmic axis over these values, and its ticks at 1, 2 and 5 times powers of ten."""
    low, high = min(values) * 0.8, max(values) * 1.25
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return (
        low,
        high,
        [lead * 10.0**power for power in powers for lead in (1, 2, 5) if low <= lead * 10.0**power <= high],
    )


def _jain(first: SimulatedQueue, shared: SimulatedQueue) -> str:
    parts = [
        f'<text class="head" x="{JAIN_LEFT}" y="{TOP}">Jain\'s index</text>',
        f'<text class="soft small" x="{JAIN_LEFT}" y="{TOP + 18}">of fair shares, all jobs at once;</text>',
        f'<text class="soft small" x="{JAIN_LEFT}" y="{TOP + 33}">1: everybody got its own</text>',
    ]
    wide, high = (JAIN_RIGHT - JAIN_LEFT) / 2, FLOOR - TOP - 76
    for tick in (0, 0.25, 0.5, 0.75, 1):
        y = FLOOR - tick * high
        parts.append(
            f'<line class="grid" x1="{JAIN_LEFT}" x2="{JAIN_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="soft small" x="{JAIN_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    for index, ((name, words), outcome) in enumerate(zip(ORDERS, (first, shared), strict=True)):
        x, y = JAIN_LEFT + (index + 0.25) * wide, FLOOR - outcome.jain * high
        middle = f'x="{x + wide / 4:.1f}" text-anchor="middle"'
        parts.append(
            f'<rect class="{name}" fill-opacity=".75" x="{x:.1f}" y="{y:.1f}" width="{wide / 2:.1f}" '
            f'height="{FLOOR - y:.1f}"><title>{words}: {outcome.jain:.3f}</title></rect>'
            f'<text {middle} y="{y - 6:.1f}" font-weight="600">{outcome.jain:.3f}</text>'
            f'<text {middle} y="{FLOOR + 18}">{("first come", "fair")[index]}</text>'
        )
    return "".join(parts)
