"""`tables cells` draws what the table's own log says, and fails where there is nothing to draw."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.layout.cells.boxes import EVERYTHING
from shared.layout.cells.tags import CELL_TAG, encode_cell
from tests.support.delta_tables import HandTable

pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")


def test_the_cells_of_a_table_are_drawn_from_its_log(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t")
    table.append()
    command = ["tables", "cells", str(table.path), "--svg", str(tmp_path / "cells.svg")]
    empty = CliRunner().invoke(app, command)
    assert (empty.exit_code, (tmp_path / "cells.svg").exists()) == (1, False)
    assert str(empty.exception) == f"no file of {table.path} lies in a cell"
    for span in ((EVERYTHING[0], 5), (5, EVERYTHING[1])):
        table.append(tags={CELL_TAG: encode_cell((span, EVERYTHING), [("id",), ("v",)])})
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, "The cells at version 3 are in" in done.output) == (0, True)
    assert "2 cells of id and v: 2 files, and 1 that wait or are new" in (tmp_path / "cells.svg").read_text()
    assert '"version": 3' in CliRunner().invoke(app, ["--json", *command]).output
