"""The picture of cells shows each as one box, in the order of its bounds, and counts what lies in none."""

import re

from shared.layout.cells.boxes import EVERYTHING, Box
from shared.layout.cells.picture import SIDE, draw_cells
from shared.layout.cells.tags import CELL_TAG, encode_cell
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile
from tests.unit.shared.layout.cells.test_cell_tags import COLUMNS

LEFT: Box = ((EVERYTHING[0], 10), EVERYTHING)
LOW: Box = ((10, EVERYTHING[1]), (EVERYTHING[0], 7))
HIGH: Box = ((10, EVERYTHING[1]), (7, EVERYTHING[1]))


def file(name: str, size: int, tag: str = "") -> DataFile:
    return DataFile(name, size, WHOLE_TABLE, tags={CELL_TAG: tag} if tag else {})


def boxes(picture: str) -> dict[tuple[float, ...], str]:
    """The sides of each cell, x, y, width and height, and its opacity."""
    found = re.findall(r'<rect x="(.+?)" y="(.+?)" width="(.+?)" height="(.+?)" .*?opacity="(.+?)"', picture)
    return {tuple(float(one) for one in sides): opacity for *sides, opacity in found}


def test_cells_are_boxes_in_the_order_of_their_bounds_and_darker_the_more_they_hold() -> None:
    files = [
        *(file(f"l{at}", 50, encode_cell(LEFT, COLUMNS)) for at in range(2)),
        file("low", 50, encode_cell(LOW, COLUMNS)),
        file("high", 0, encode_cell(HIGH, COLUMNS)),
        file("waits", 9, encode_cell(None, COLUMNS)),
        file("new", 9),
    ]
    picture = draw_cells(files)
    assert picture is not None
    half = SIDE / 2
    assert boxes(picture) == {
        (48, 48, half, SIDE): "1.00",
        (48 + half, 48 + half, half, half): "0.54",
        (48 + half, 48, half, half): "0.08",
    }
    assert "3 cells of" in picture
    assert "4 files, and 2 that wait or are new" in picture
    assert "2 files, 100 bytes" in picture


def test_cells_of_one_column_are_as_high_as_the_picture() -> None:
    spans = (EVERYTHING[0], 3), (3, EVERYTHING[1])
    tags = [encode_cell((span,), [("a",)]) for span in spans]
    picture = draw_cells(file(str(at), 1, tag) for at, tag in enumerate(tags))
    assert picture is not None
    assert set(boxes(picture)) == {(48, 48, SIDE / 2, SIDE), (48 + SIDE / 2, 48, SIDE / 2, SIDE)}


def test_without_a_cell_there_is_no_picture() -> None:
    wrong = file("wrong", 9, '[[["a"],5,5]]')
    assert draw_cells([file("new", 9), file("odd", 9, "7"), file("waits", 9, "[]"), wrong]) is None
