"""The picture of a what-if has every rule and every target, whatever the table."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from tests.bench.what_if_picture import draw, tick

pa = pytest.importorskip("pyarrow")
deltalake = pytest.importorskip("deltalake")
SVG = ".//{http://www.w3.org/2000/svg}"


def picture(table: Path, *options: str) -> str:
    return draw(json.loads(CliRunner().invoke(app, ["--json", "what-if", str(table), *options]).stdout))


def test_each_rule_has_its_lines_and_its_dot_and_each_target_its_bar(tmp_path: Path) -> None:
    for number in range(24):
        deltalake.write_deltalake(str(tmp_path / "orders"), pa.table({"id": [number]}), mode="append")
    drawn = ET.fromstring(picture(tmp_path / "orders"))  # noqa: S314 - a text that we wrote
    # Nine rules in the legend and in both charts over time, a dot for each, and a bar of two parts for each target.
    assert len(drawn.findall(f"{SVG}polyline")) == 3 * 9
    assert len(drawn.findall(f"{SVG}circle")) == 9
    assert len([one for one in drawn.findall(f"{SVG}rect") if "y" in one.attrib]) == 2 * 6 + 2
    assert "with your settings" in picture(tmp_path / "orders", "--set", "target-file-size=64KiB")


def test_a_table_written_once_has_nothing_over_time(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path / "once"), pa.table({"id": [1]}))
    assert "nothing to see over time" in picture(tmp_path / "once")


def test_ticks_of_an_axis_are_never_rounded() -> None:
    seconds = (0, 5, 65, 75, 90, 4_500, 27 * 3_600, 36 * 3_600, 86_400)
    stated = ["0 s", "5 s", "65 s", "1.25 min", "1.5 min", "1.25 h", "27 h", "1.5 d", "1 d"]
    assert [tick(one) for one in seconds] == stated
