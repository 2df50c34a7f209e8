"""`lakewright what-if` on a real table that nobody registered: a comparison, a sentence, curves."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.errors import InvalidInput

pa = pytest.importorskip("pyarrow")
deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "orders"
    for number in range(24):
        rows = pa.table({"id": [number], "dt": [f"2026-01-0{1 + number % 2}"]})
        deltalake.write_deltalake(str(path), rows, mode="append", partition_by=["dt"])
    return path


def test_any_table_is_compared_without_a_service(table: Path, tmp_path: Path) -> None:
    svg = tmp_path / "curves.svg"
    result = CliRunner().invoke(app, ["what-if", str(table), "--svg", str(svg)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, (result.output, result.exception)
    assert "Delta OPTIMIZE after each commit" in result.stdout
    assert "Lakewright by target size" in result.stdout
    drawn = ET.parse(svg).getroot()  # noqa: S314 - a file that we wrote
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}polyline")) == 9 + 9 + 3


def test_machines_get_one_document(table: Path) -> None:
    result = CliRunner().invoke(app, ["--json", "what-if", str(table), "--max-commits", "10"])
    answer = json.loads(result.stdout)
    assert answer["versions"] == [13, 23]
    assert answer["commits"] == 10
    assert {rule["name"] for rule in answer["rules"]} >= {"nothing", "lakewright", "iceberg_defaults"}


def test_a_place_without_a_table_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["what-if", str(tmp_path)])
    assert isinstance(result.exception, InvalidInput)
    assert str(tmp_path) in str(result.exception)
