"""A picture of the cells of a table, as SVG: the boxes of two of its clustering columns.

Bounds are drawn in their order and at equal distances: numbers of texts say nothing to people. Darker cells hold more.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from xml.sax.saxutils import escape

from shared.layout.cells.boxes import EVERYTHING, Box, Span
from shared.layout.cells.tags import CELL_TAG, ColumnPath, decode_cell
from shared.table import DataFile

SIDE = 640
"""Pixels of each side of the square that all cells fill."""

_EDGE = 48
_LIGHTEST = 0.08
"""Opacity of a cell without bytes."""


def draw_cells(files: Iterable[DataFile]) -> str | None:
    """Return the picture of live files; None if no file names a cell.

    Of three columns or more, the first two are drawn: cells that differ in others lie above each other.
    """
    live = tuple(files)
    columns = next((found for file in live if (found := _columns(file))), ())
    held: defaultdict[Box, list[DataFile]] = defaultdict(list)
    for file in live:
        if columns and (cell := decode_cell(file.tags.get(CELL_TAG, ""), columns)) is not None:
            held[cell].append(file)
    if not held:
        return None
    drawn = [[box[at] if at < len(box) else EVERYTHING for box in held] for at in (0, 1)]
    places = [_places(spans) for spans in drawn]
    sizes = [sum(file.size_bytes for file in inside) for inside in held.values()]
    cells = "".join(
        _cell([_pixels(spans[at], place) for spans, place in zip(drawn, places, strict=True)], size / max(sizes), text)
        for at, (size, text) in enumerate(zip(sizes, map(_text, held.values()), strict=True))
    )
    settled = sum(map(len, held.values()))
    names = [escape(".".join(path)) for path in columns]
    title = (
        f"{len(held)} cells of {' and '.join(names)}: {settled} files, and {len(live) - settled} that wait or are new"
    )
    whole = SIDE + 2 * _EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{whole}" viewBox="0 0 {whole} {whole}" '
        f'font-family="sans-serif" font-size="13"><title>{title}</title><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{_EDGE}" y="{_EDGE // 2}">{title}</text>{cells}'
        f'<text x="{whole // 2}" y="{whole - _EDGE // 2}" text-anchor="middle">{names[0]}</text>'
        f'<text transform="translate({_EDGE // 2} {whole // 2}) rotate(-90)" text-anchor="middle">'
        f"{names[1] if len(names) > 1 else ''}</text></svg>\n"
    )


def _columns(file: DataFile) -> tuple[ColumnPath, ...]:
    """Return the columns of the cell that a file names."""
    try:
        found = tuple(tuple(path) for path, _, _ in json.loads(file.tags.get(CELL_TAG, "")))
    except (ValueError, TypeError, RecursionError):
        return ()
    return found if decode_cell(file.tags[CELL_TAG], found) is not None else ()


def _places(spans: Iterable[Span]) -> dict[int, float]:
    """Return where the bounds of cells lie, from 0 to 1."""
    bounds = sorted({bound for span in spans for bound in span})
    return {bound: at / (len(bounds) - 1) for at, bound in enumerate(bounds)}


def _pixels(span: Span, places: dict[int, float]) -> tuple[float, float]:
    return places[span[0]] * SIDE, places[span[1]] * SIDE


def _text(files: Iterable[DataFile]) -> str:
    sizes = [file.size_bytes for file in files]
    return f"{len(sizes)} files, {sum(sizes):,} bytes"


def _cell(sides: Iterable[tuple[float, float]], share: float, text: str) -> str:
    (left, right), (low, high) = sides
    opacity = _LIGHTEST + (1 - _LIGHTEST) * share
    return (
        f'<rect x="{_EDGE + left:.1f}" y="{_EDGE + SIDE - high:.1f}" width="{right - left:.1f}" '
        f'height="{high - low:.1f}" fill="#1f77b4" fill-opacity="{opacity:.2f}" stroke="#333">'
        f"<title>{text}</title></rect>"
    )
