"""`lakewright what-if` on a real table that no one registered: a comparison, a sentence, curves."""

import json
import random
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.errors import InvalidInput, LakewrightError

pa = pytest.importorskip("pyarrow")
deltalake = pytest.importorskip("deltalake")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 24 commits, written once; each test has its own copy."""
    path = tmp_path_factory.mktemp("written") / "orders"
    for number in range(24):
        rows = pa.table({"id": [number], "dt": [f"2026-01-0{1 + number % 2}"]})
        deltalake.write_deltalake(str(path), rows, mode="append", partition_by=["dt"])
    return path


@pytest.fixture
def table(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "orders"))


def test_any_table_is_compared_without_a_service(table: Path) -> None:
    result = CliRunner().invoke(app, ["what-if", str(table)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, (result.output, result.exception)
    assert "Delta OPTIMIZE, each commit" in result.stdout
    assert "Lakewright by target size" in result.stdout
    assert "These prices are assumptions" in result.stdout
    assert "under every retention of removed files: " in result.stdout  # Nothing was removed.
    assert "Recommendation" in result.stdout


def test_a_table_written_once_is_compared_too(tmp_path: Path) -> None:
    path = tmp_path / "once"
    deltalake.write_deltalake(str(path), pa.table({"id": [1]}))
    result = CliRunner().invoke(app, ["what-if", str(path)])
    assert result.exit_code == 0, (result.output, result.exception)
    assert "1 commit in 0 s added 1 file" in result.stdout
    assert "Nothing to change" in result.stdout


def test_prices_are_those_that_were_asked_for(table: Path) -> None:
    prices = {"--queries-per-hour": 7, "--open-s": 0.5, "--write-s-per-gib": 99, "--tail-hours": 48}
    options = [str(part) for pair in prices.items() for part in pair]
    answer = json.loads(CliRunner().invoke(app, ["--json", "what-if", str(table), *options]).stdout)
    assert answer["cost_model"] == {name[2:].replace("-", "_"): value for name, value in prices.items()}
    (alone,) = [rule for rule in answer["rules"] if rule["name"] == "no_compaction"]
    # 24 files, read 7 times an hour at half a second each, for two days and the moments of writing.
    assert alone["cost_s"] == pytest.approx(24 * 7 * 0.5 * 48, rel=0.01)


def test_machines_get_one_document(table: Path) -> None:
    result = CliRunner().invoke(app, ["--json", "what-if", str(table), "--max-commits", "10"])
    answer = json.loads(result.stdout)
    assert answer["versions"] == [13, 23]
    assert answer["commits"] == 10
    assert {rule["name"] for rule in answer["rules"]} >= {"no_compaction", "lakewright", "iceberg_defaults"}


def test_a_hole_below_a_checkpoint_is_named_and_the_replay_begins_at_the_checkpoint(table: Path) -> None:
    deltalake.DeltaTable(str(table), version=12).create_checkpoint()
    (table / "_delta_log" / f"{5:020d}.json").unlink()
    answer = json.loads(CliRunner().invoke(app, ["--json", "what-if", str(table)]).stdout)
    assert (answer["versions"], answer["commits"]) == ([12, 23], 11)
    assert answer["notes"] == ["Version 5 is missing from the log: the replay begins behind that, at version 12."]


def test_a_place_without_a_table_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["what-if", str(tmp_path)])
    assert isinstance(result.exception, InvalidInput)
    assert str(tmp_path) in str(result.exception)


def test_settings_are_shown_beside_the_policy_in_force(table: Path) -> None:
    settings = ["--set", "target-file-size=64KiB", "--set", "min-input-files=2"]
    result = CliRunner().invoke(app, ["what-if", str(table), *settings], env={"COLUMNS": "200"})
    assert result.exit_code == 0, (result.output, result.exception)
    assert "with your settings" in result.stdout
    assert "lakewright.target-file-size=64KiB, lakewright.min-input-files=2" in result.stdout


@pytest.mark.parametrize("stated", ["fan-in=banana", "banana=1"])
def test_settings_that_cannot_be_used_are_refused_before_anything_is_read(stated: str) -> None:
    result = CliRunner().invoke(app, ["what-if", "/nowhere/at/all", "--set", stated])
    assert isinstance(result.exception, LakewrightError)
    assert stated.partition("=")[0] in str(result.exception)


@pytest.mark.parametrize(
    "price",
    ["queries-per-hour=inf", "queries-per-hour=nan", "open-s=1e308", "open-s=nan", "write-s-per-gib=inf",
     "tail-hours=nan"],
)  # fmt: skip
def test_a_price_that_is_no_number_is_a_wrong_use(price: str) -> None:
    result = CliRunner().invoke(app, ["what-if", "/nowhere/at/all", f"--{price}"])
    assert result.exit_code == 2, result.exception
    assert "Invalid value" in result.output


def test_a_directory_given_as_a_name_is_hinted_at(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent)
    for name, is_hinted in ((table.name, True), ("absent", False)):
        result = CliRunner().invoke(app, ["--url", "http://127.0.0.1:9", "what-if", name])
        assert isinstance(result.exception, LakewrightError)
        assert (f"what-if ./{name}" in str(result.exception)) == is_hinted


def test_ranges_of_a_sort_key_are_compared_now_and_sorted(table: Path) -> None:
    command = ["what-if", str(table), "--sort-key", "id", "--sort-key", "ID"]
    shown = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert shown.exit_code == 0, (shown.output, shown.exception)
    assert "Ranges of id" in shown.stdout
    (one, _) = json.loads(CliRunner().invoke(app, ["--json", *command]).stdout)["sort_keys"]
    # Each file has one row with its own id: a thousandth of the rows is in one of them, a tenth in three.
    assert [each["share"] for each in one["ranges"]] == [0.001, 0.01, 0.1]
    assert [each["share_read_now"] * one["files"] for each in one["ranges"]] == pytest.approx([1, 1, 3], abs=1)
    absent = CliRunner().invoke(app, ["what-if", str(table), "--sort-key", "absent"])
    assert isinstance(absent.exception, LakewrightError)
    assert "no bounds of 'absent'" in str(absent.exception)


def test_the_first_column_of_the_tables_own_order_is_counted_without_being_named(table: Path) -> None:
    opened = deltalake.DeltaTable(str(table))
    assert json.loads(CliRunner().invoke(app, ["--json", "what-if", str(table)]).stdout)["sort_keys"] == []
    opened.alter.set_table_properties({"lakewright.sort-by": "id desc"}, raise_if_not_exists=False)
    (one,) = json.loads(CliRunner().invoke(app, ["--json", "what-if", str(table)]).stdout)["sort_keys"]
    assert (one["column"], one["files_without_range"]) == ("id", 0)


def asked(folder: Path, *lines: object) -> str:
    """Write lines of filters, and return the name of their file."""
    file = folder / f"filters-{len(lines)}.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return str(file)


def test_recorded_filters_argue_for_an_order_or_for_none(table: Path, tmp_path: Path) -> None:
    by_id, by_day = ({"type": "eq", "term": term, "value": value} for term, value in (("id", 7), ("dt", "2026-01-01")))
    report = {"report-type": "scan-report", "table-name": "c.orders", "metrics": {}, "filter": by_day}
    filters = asked(tmp_path, {"filter": by_id, "times": 9}, report, {"filter": {**by_id, "term": "gone"}})
    command = ["what-if", str(table), "--filters", filters]
    shown = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert shown.exit_code == 0, (shown.output, shown.exception)
    assert "By 3 different filters and " in shown.stdout
    assert "are partitioned by them: dt, gone." in shown.stdout
    assert "No order would save a tenth of the bytes that these filters read." in shown.stdout
    advice = json.loads(CliRunner().invoke(app, ["--json", *command]).stdout)["sort_advice"]
    assert (advice["column"], advice["properties"], advice["left_out"]) == (None, {}, ["dt", "gone"])
    nothing = json.loads(CliRunner().invoke(app, ["--json", *command[:-1], asked(tmp_path)]).stdout)["sort_advice"]
    assert (nothing["column"], nothing["candidates"], nothing["rows"]) == (None, [], 0)


def test_an_order_that_is_argued_for_is_shown_with_its_property(tmp_path: Path) -> None:
    path = tmp_path / "random"
    dice = random.Random(1)
    for number in range(8):
        rows = {
            "id": [(number + 8 * step) * 7 % 64 for step in range(8)],
            "v": [dice.randbytes(10_000) for _ in range(8)],
        }
        deltalake.write_deltalake(str(path), pa.table(rows), mode="append")
    size = sum(pa.table(deltalake.DeltaTable(path).get_add_actions(flatten=True))["size_bytes"].to_pylist()) // 8
    deltalake.DeltaTable(path).alter.set_table_properties({"lakewright.target-file-size": str(size)}, False)
    filters = asked(tmp_path, {"filter": {"type": "lt", "term": "id", "value": 7}})
    shown = CliRunner().invoke(app, ["what-if", str(path), "--filters", filters], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, (shown.output, shown.exception)
    assert "To sort by id, set lakewright.sort-by=id." in shown.stdout
    assert "12.5%" in shown.stdout


def test_filters_that_cannot_be_used_are_refused_with_the_reason(table: Path, tmp_path: Path) -> None:
    for arguments, why in (
        ([str(table), "--filters", asked(tmp_path, "no filter")], "line 1 is not JSON"),
        ([str(table), "--filters", str(tmp_path / "absent")], "absent cannot be read"),
        (["orders", "--filters", asked(tmp_path)], "name the table by its path or URI"),
    ):
        refused = CliRunner().invoke(
            app, ["--url", "http://127.0.0.1:9", "what-if", *arguments], env={"COLUMNS": "200"}
        )
        assert refused.exit_code != 0
        assert why in f"{refused.output}{refused.exception}"
