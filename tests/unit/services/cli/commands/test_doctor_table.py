"""`lakewright doctor TABLE` tells harmed tables from those in danger and sound ones, and its repair ends the harm."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from tests.support import delta_tables as tables


def doctor(path: Path) -> tuple[int, dict[str, Any]]:
    """The exit code and the answer."""
    result = CliRunner().invoke(app, ["doctor", str(path)], obj=CliContext("http://127.0.0.1:9", as_json=True))
    assert result.stdout, (result.output, result.exception)
    return result.exit_code, json.loads(result.stdout)


def status(answer: dict[str, Any]) -> dict[str, str]:
    return {finding["check"]: finding["status"] for finding in answer["findings"]}


def spark_like(path: Path, value: str, spelled: str, files: int = 2) -> tables.HandTable:
    """A table of one partition whose paths are spelled as Spark spells them."""
    made = tables.HandTable(path, partitions={"p": "string"})
    (path / f"p={value}").mkdir()
    for _ in range(files):
        add = made.new_file(20, {"p": value})
        (path / add["path"]).rename(path / f"p={value}" / add["path"])
        made.commit([{"add": add | {"path": f"p={spelled}/{add['path']}"}}])
    return made


SPELLINGS = [("a b", "a%20b"), ("Z\u00fcrich", "Z\u00fcrich")]


def ids(path: Path) -> Counter[int]:
    return Counter(DeltaTable(str(path)).to_pyarrow_table().column("id").to_pylist())


@pytest.mark.parametrize(("value", "spelled"), SPELLINGS)
def test_a_delete_that_delta_rs_wrote_under_another_spelling_is_found_and_repaired(
    tmp_path: Path, value: str, spelled: str
) -> None:
    made = spark_like(tmp_path / "t", value, spelled)
    before_code, before = doctor(made.path)
    assert (before_code, status(before)["removes"], status(before)["paths"]) == (0, "ok", "warn")
    DeltaTable(str(made.path)).delete("id < 10")
    assert sum(ids(made.path).values()) == 50, "delta-rs has fixed it: look whether this is needed still"

    code, answer = doctor(made.path)

    assert (code, answer["ok"], status(answer)["removes"]) == (1, False, "fail")
    (missed,) = answer["missed"]
    assert (missed["version"], missed["fate"], missed["rows"], missed["operation"]) == (3, "live", 20, "DELETE")
    assert "delta-rs" in missed["engine"]
    assert missed["added"].startswith(f"p={spelled}/")
    assert missed["removed"] != missed["added"]
    # The repair, as docs/doctor.md tells it.
    made.commit(answer["repair"])
    assert ids(made.path) == Counter(range(10, 40))
    assert doctor(made.path)[1]["missed"][0]["fate"] == "ended"
    assert doctor(made.path)[0] == 0


def test_rows_that_a_later_compaction_carried_on_stay_harm_although_no_stale_file_is_live(tmp_path: Path) -> None:
    made = spark_like(tmp_path / "t", "a b", "a%20b")
    DeltaTable(str(made.path)).delete("id < 10")
    live = tables.live(made.path)
    removes = [{"remove": {"path": path, "dataChange": False, "deletionTimestamp": 1}} for path, _ in live]
    merged = made.new_file(50, {"p": "a b"}) | {"dataChange": False}
    made.commit([*removes, {"add": merged}])

    code, answer = doctor(made.path)

    assert (code, answer["missed"][0]["fate"], answer["repair"]) == (1, "carried", [])
    assert "RESTORE" in next(one["action"] for one in answer["findings"] if one["check"] == "removes")


@pytest.mark.parametrize("value", ["a b", "Z\u00fcrich", "x"])
def test_a_table_that_delta_rs_alone_wrote_is_sound(tmp_path: Path, value: str) -> None:
    for start in (0, 20):
        write_deltalake(
            str(tmp_path / "t"), pa.table({"id": range(start, start + 20), "p": [value] * 20}), mode="append",
            partition_by=["p"],
        )  # fmt: skip
    table = DeltaTable(str(tmp_path / "t"))
    table.delete("id < 10")
    table.update(updates={"id": "id + 100"}, predicate="id > 30")
    code, answer = doctor(tmp_path / "t")
    assert (code, answer["missed"], answer["doubled"]) == (0, [], [])
    assert set(status(answer).values()) == {"ok"}


def test_harm_is_found_behind_a_checkpoint_and_a_cleaned_up_log(tmp_path: Path) -> None:
    made = spark_like(tmp_path / "t", "a b", "a%20b")
    DeltaTable(str(made.path)).create_checkpoint()
    for version in (0, 1):
        (made.path / "_delta_log" / f"{version:020d}.json").unlink()
    DeltaTable(str(made.path)).delete("id < 10")
    code, answer = doctor(made.path)
    assert (code, answer["first_version"], len(answer["missed"])) == (1, 2, 1)
    assert status(answer)["log"] == "warn", "version 1 can no longer be told"
    (made.path / "_delta_log" / f"{2:020d}.json").unlink()
    code, answer = doctor(made.path)
    assert (code, status(answer)["log"], len(answer["missed"])) == (1, "ok", 1)


def test_a_log_with_a_hole_is_reported_to_have_one(tmp_path: Path) -> None:
    made = spark_like(tmp_path / "t", "a b", "a%20b", files=3)
    (made.path / "_delta_log" / f"{2:020d}.json").unlink()
    code, answer = doctor(made.path)
    assert (code, answer["version"], status(answer)) == (1, None, {"log": "fail"})
    assert "missing" in answer["findings"][0]["what"]


def test_one_file_under_two_spellings_is_counted_as_doubled(tmp_path: Path) -> None:
    made = spark_like(tmp_path / "t", "a b", "a%20b", files=1)
    (add,) = tables.live(made.path).values()
    made.commit([{"add": add | {"path": add["path"].replace("%20", " "), "dataChange": True}}])
    code, answer = doctor(made.path)
    assert (code, status(answer)["duplicates"]) == (1, "fail")
    assert [sorted(several) for several in answer["doubled"]] == [
        sorted([add["path"], add["path"].replace("%20", " ")])
    ]


def test_files_outside_and_refusals_are_dangers_and_no_harm(tmp_path: Path) -> None:
    made = tables.HandTable(tmp_path / "t", configuration={"qbeast.lastRevisionID": "1"})
    made.append(1)
    made.append(1, path="file:///elsewhere/x.parquet")
    code, answer = doctor(made.path)
    assert (code, status(answer)["external_files"], status(answer)["rewrites"]) == (0, "warn", "warn")


def test_people_get_a_message_and_a_missing_table_is_named(tmp_path: Path) -> None:
    made = spark_like(tmp_path / "t", "a b", "a%20b")
    DeltaTable(str(made.path)).delete("id < 10")
    setting = CliContext("http://127.0.0.1:9", as_json=False)
    shown = CliRunner().invoke(app, ["doctor", str(made.path)], obj=setting)
    assert shown.exit_code == 1
    assert "still live" in shown.output
    assert "Removes that missed" in shown.output
    shutil.rmtree(made.path / "_delta_log")
    gone = CliRunner().invoke(app, ["doctor", str(made.path)], obj=setting)
    assert gone.exit_code == 1
