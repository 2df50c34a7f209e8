"""The backlog and the number of actors over time, as one SVG; docs/adr/0007 states why no library draws it.

`python -m tests.cluster.scaling_picture RUN.json PICTURE.svg` draws the run that a test recorded.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.line_chart import BOTTOM, HEIGHT, LEFT, TOP, WIDTH, frame, grid_line, legend

RIGHT, MIDDLE = 190, 230
GAP = 24
WORK, DESIRED, READY = "#8a8f98", "#1864ab", "#2b8a3e"


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen `at_s` seconds after the start: predicted work in seconds, and numbers of actors."""

    at_s: float
    work_s: int
    desired: int
    ready: int


def draw(title: str, samples: Sequence[Sample], *, most: int) -> str:
    """Return SVG text: the backlog above, and below it the actors that are desired and ready; `most` is the bound."""
    end_s = samples[-1].at_s
    top_work = max(sample.work_s for sample in samples) or 1

    def x(at_s: float) -> float:
        return LEFT + at_s / end_s * (WIDTH - LEFT - RIGHT)

    def y_work(work_s: float) -> float:
        return MIDDLE - GAP - work_s / top_work * (MIDDLE - GAP - TOP)

    def y_actors(actors: float) -> float:
        return HEIGHT - BOTTOM - actors / most * (HEIGHT - BOTTOM - MIDDLE)

    def steps(values: Sequence[int]) -> str:
        points = [f"{x(samples[0].at_s):.1f},{y_actors(values[0]):.1f}"]
        for sample, before, value in zip(samples[1:], values, values[1:], strict=False):
            points += [f"{x(sample.at_s):.1f},{y_actors(one):.1f}" for one in (before, value)]
        return " ".join(points)

    work = " ".join(f"{x(one.at_s):.1f},{y_work(one.work_s):.1f}" for one in samples)
    area = f"{x(samples[0].at_s):.1f},{y_work(0):.1f} {work} {x(end_s):.1f},{y_work(0):.1f}"
    parts = [grid_line(y_work(part * top_work), f"{part * top_work:,.0f} s", right=RIGHT) for part in (0, 0.5, 1)]
    parts += [grid_line(y_actors(actors), str(actors), right=RIGHT) for actors in range(most + 1)]
    parts += list(_ticks(end_s, x))
    parts.append(f'<polygon points="{area}" fill="{WORK}" fill-opacity="0.35" stroke="{WORK}"/>')
    for values, color, width in (
        ([one.desired for one in samples], DESIRED, 3),
        ([one.ready for one in samples], READY, 1.5),
    ):
        parts.append(f'<polyline points="{steps(values)}" fill="none" stroke="{color}" stroke-width="{width}"/>')
    for y, color, label in (
        (TOP + 12, WORK, "predicted work"),
        (MIDDLE + 8, DESIRED, "actors desired"),
        (MIDDLE + 30, READY, "actors ready"),
    ):
        parts.append(legend(y, label, f'stroke="{color}" stroke-width="3"', right=RIGHT))
    return frame(title, parts)


def _ticks(end_s: float, x: Callable[[float], float]) -> Iterator[str]:
    step_s = next(step for step in (10, 30, 60, 120, 300, 600) if end_s / step <= 10 or step == 600)
    for at_s in range(0, int(end_s) + 1, step_s):
        label = f"{at_s} s" if step_s < 60 else f"{at_s / 60:g} min"
        yield f'<text x="{x(at_s):.1f}" y="{HEIGHT - 16}" text-anchor="middle">{label}</text>'


def save(file: Path, title: str, samples: Sequence[Sample], *, most: int) -> None:
    """Write the run, from which `main` can draw it again, and its picture next to it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    run = {"title": title, "most": most, "samples": [asdict(sample) for sample in samples]}
    file.write_text(json.dumps(run) + "\n")
    file.with_suffix(".svg").write_text(draw(title, samples, most=most))


def main(run: str, picture: str) -> None:
    """Draw a recorded run."""
    found = json.loads(Path(run).read_text())
    samples = [Sample(**sample) for sample in found["samples"]]
    Path(picture).write_text(draw(found["title"], samples, most=found["most"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
