"""The laboratory notices what a bad rewrite does; a laboratory that cannot fail proves nothing.

Each rewrite here is done by hand and wrong in one way that was seen in the field or nearly so. No Spark takes part.
"""

import json
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.interop.cases import CASES
from tests.interop.engines.delta_rs import DatasetReader, DeltaRsWriter, QueryReader
from tests.interop.engines.duck import DuckDbFiles, DuckDbReader
from tests.interop.engines.polars_ import PolarsReader
from tests.interop.laboratory import Laboratory, Round, Staff
from tests.interop.operations import Delete, Merge, Operation
from tests.interop.report import page
from tests.interop.table_log import TableLog
from tests.interop.values import Rows
from tests.interop.verdicts import Failure, Place, Result, Verdict, essence, explain, judge, recognized

pytest.importorskip("duckdb", reason="DuckDB and Polars are in the group `dev`")


Table: TypeAlias = pa.Table


def rewritten(
    location: Path,
    *,
    rows: Callable[[Table], Table] = lambda table: table,
    directory: str = "",
    stats: bool = True,
    **parquet: Any,
) -> int:
    """Merge the files of each partition by hand: read by Arrow, written by Arrow, committed as text."""
    log = TableLog.read(location)
    partitions: dict[str, list[dict[str, Any]]] = {}
    for add in log.live():
        partitions.setdefault(json.dumps(add["partitionValues"]), []).append(add)
    actions: list[dict[str, Any]] = []
    for inputs in partitions.values():
        table = rows(pa.concat_tables([pq.ParquetFile(log.file(add)).read() for add in inputs]))
        path = f"{directory}part-{uuid.uuid4()}.parquet"
        file = location / path
        file.parent.mkdir(exist_ok=True)
        pq.write_table(table, file, **({"compression": "snappy", "store_decimal_as_integer": True} | parquet))
        add = {
            "path": path,
            "partitionValues": inputs[0]["partitionValues"],
            "size": file.stat().st_size,
            "modificationTime": 1,
            "dataChange": False,
        }
        actions.append({"add": add | ({"stats": _merged(inputs)} if stats else {})})
        actions += [{"remove": {"path": one["path"], "dataChange": False, "deletionTimestamp": 1}} for one in inputs]
    name = f"{log.version + 1:020d}.json"
    (location / "_delta_log" / name).write_text("\n".join(map(json.dumps, actions)))
    return len(partitions)


def _merged(inputs: list[dict[str, Any]]) -> str:
    """The statistics of the merged file; bounds are those of the first, since the cases repeat their values."""
    stats = [json.loads(add["stats"]) for add in inputs]
    merged = stats[0] | {"numRecords": sum(one["numRecords"] for one in stats)}
    for name in ("id", "note"):
        merged["maxValues"][name] = max(one["maxValues"][name] for one in stats)
    merged["nullCount"] = _summed([one["nullCount"] for one in stats])
    return json.dumps(merged)


def _summed(trees: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        name: _summed([tree[name] for tree in trees]) if isinstance(value, dict) else sum(t[name] for t in trees)
        for name, value in trees[0].items()
    }


def results_of(
    rewrite: Callable[[Path], int], tmp_path: Path, case: str = "plain", *operations: Operation
) -> list[Result]:
    no_one: Any = None
    crew = Staff(
        creators={"deltalake": DeltaRsWriter()},
        writers=(DeltaRsWriter(),),
        readers=(DatasetReader(), QueryReader(), DuckDbReader(), DuckDbFiles(), PolarsReader()),
        spark=no_one,
        rewrite=rewrite,
    )
    plan = Round(operations, stale=operations)
    return list(Laboratory(crew, tmp_path).run(CASES[case], "deltalake", plan))


def ours(results: list[Result]) -> list[Result]:
    return [result for result in results if result.verdict is Verdict.OURS]


def test_a_right_rewrite_has_no_difference_that_is_ours(tmp_path: Path) -> None:
    results = results_of(rewritten, tmp_path, "plain", Delete(), Merge())

    assert not ours(results)
    assert sum(result.verdict is Verdict.AGREES for result in results) > 50
    withdrawn = [one for one in results if one.detail.startswith("the engine withdrew")]
    assert {one.place.operation for one in withdrawn} == {
        "DELETE, read before our rewrite",
        "MERGE, read before our rewrite",
    }


def test_a_lost_row_is_noticed_by_every_reader(tmp_path: Path) -> None:
    results = results_of(lambda location: rewritten(location, rows=lambda table: table.slice(1)), tmp_path)

    assert {one.reader for one in ours(results) if one.check == "rows and types"} == {
        "deltalake (Arrow dataset)",
        "deltalake (DataFusion)",
        "DuckDB (delta extension)",
        "DuckDB (live files)",
        "polars",
    }


def test_a_doubled_row_is_noticed_although_the_set_of_rows_is_the_same(tmp_path: Path) -> None:
    def doubled(location: Path) -> int:
        return rewritten(location, rows=lambda table: pa.concat_tables([table, table.slice(0, 1)]))

    assert any("13 rows instead of 12" in one.detail for one in ours(results_of(doubled, tmp_path)))


def test_a_path_that_another_engine_spells_otherwise_in_its_remove_is_noticed(tmp_path: Path) -> None:
    """`p=a b` as a directory, unescaped: legal, and the row that deltalake deletes afterwards stays."""

    def in_a_blank_directory(location: Path) -> int:
        return rewritten(location, directory="p=a%20b/".replace("%20", "ü "))

    results = results_of(in_a_blank_directory, tmp_path, "partitions of few alphabets", Delete())

    assert any(one.place.operation == "DELETE" and one.check == "rows and types" for one in ours(results))


def test_two_failures_are_the_same_but_for_the_files_that_they_name() -> None:
    where = "FileNotFoundError: Object at location /tmp/x/{}/table/p={}/duckdb_{}_0.parquet not found"

    assert essence(where.format("treated", "100%", "a1")) == essence(where.format("control", "a b", "99"))
    assert essence(where.format("treated", "100%", "a1")) != essence("FileNotFoundError: the log is gone")


def test_only_a_failure_is_ever_known_never_other_rows() -> None:
    place = Place("row tracking", "spark", "deltalake", "VACUUM")
    words = "VACUUM: CommitFailedError: Unsupported table features required: [RowTracking]"
    loud = Result(place, "-", "operation", Verdict.OURS, words)
    silent = Result(place, "-", "rows and types", Verdict.OURS, "12 rows instead of 12; too many [...]")

    assert recognized(loud).verdict is Verdict.KNOWN
    assert recognized(silent).verdict is Verdict.OURS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stats": False}, "minValues of id is lost"),
        ({"compression": "zstd"}, "codec of id changed from SNAPPY to ZSTD"),
        ({"write_statistics": False}, "the files' own bounds of id are lost"),
        ({"use_deprecated_int96_timestamps": True}, "physical type of ts changed from INT64 to INT96"),
    ],
)
def test_a_change_of_the_files_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    results = results_of(lambda location: rewritten(location, **change), tmp_path, "every type")

    (laws,) = [one for one in results if one.reader == "laws"]
    assert laws.verdict is Verdict.OURS
    assert words in laws.detail


def test_files_that_can_no_longer_be_skipped_are_noticed(tmp_path: Path) -> None:
    results = results_of(lambda location: rewritten(location, stats=False), tmp_path)

    assert any(one.check.startswith("files read") for one in ours(results))


def test_changed_metadata_is_noticed(tmp_path: Path) -> None:
    def renaming(location: Path) -> int:
        partitions = rewritten(location)
        DeltaTable(str(location)).alter.set_table_properties({"delta.logRetentionDuration": "interval 1 day"})
        return partitions

    results = results_of(renaming, tmp_path)

    assert any("metadata changed" in one.detail for one in ours(results))


def test_an_engine_that_fails_without_us_too_is_not_held_against_us(tmp_path: Path) -> None:
    """Deltalake writes a statistic of wide decimals that it cannot read again."""
    results = results_of(rewritten, tmp_path, "wide decimals")

    assert {one.verdict for one in results} == {Verdict.CANNOT}


def rows(*values: tuple[Any, ...], types: tuple[str, ...] = ("long", "string", "string")) -> Rows:
    return Rows(("id", "a", "b"), types, Counter(values))


EXPECTED = rows((1, "x", "x"), (2, "y", "y"), (3, "z", "z"))


A_WRONG = rows((1, None, "x"), (2, "y", "y"), (3, "z", "z"))
TWO_A_WRONG = rows((1, None, "x"), (2, None, "y"), (3, "z", "z"))


@pytest.mark.parametrize(
    ("seen", "control", "verdict"),
    [
        (EXPECTED, None, "agrees"),
        (A_WRONG, EXPECTED, "OURS"),
        # The same rows wrong, fewer, or more of them in the same column.
        (A_WRONG, A_WRONG, "theirs"),
        (A_WRONG, TWO_A_WRONG, "theirs"),
        (TWO_A_WRONG, A_WRONG, "theirs"),
        # In another column, a row less, a row twice: ours, though the engine is wrong without us as well.
        (rows((1, "x", None), (2, "y", "y"), (3, "z", "z")), A_WRONG, "OURS"),
        (rows((1, None, "x"), (2, None, "y")), A_WRONG, "OURS"),
        (rows((1, None, "x"), (2, None, "y")), rows((1, None, "x"), (2, "y", "y")), "OURS"),
        (rows((1, None, "x"), (1, None, "x"), (2, None, "y"), (3, "z", "z")), A_WRONG, "OURS"),
        (EXPECTED, Failure("cannot"), "agrees"),
        (A_WRONG, Failure("cannot"), "OURS"),
        (Failure("cannot"), Failure("cannot"), "cannot"),
        (Failure("cannot"), Failure("never could"), "cannot"),
        (Failure("cannot"), EXPECTED, "OURS"),
    ],
)
def test_a_difference_is_ours_unless_the_engine_is_wrong_in_the_same_way_without_us(
    seen: Any, control: Any, verdict: str
) -> None:
    assert judge(seen, EXPECTED, lambda: control) is Verdict(verdict)


def test_a_type_is_ours_unless_the_engine_shows_it_without_us() -> None:
    other = ("long", "binary", "string")
    wrong, same = rows((1, "x", "x"), types=other), rows((1, "x", "x"), types=other)
    expected = rows((1, "x", "x"))
    assert judge(wrong, expected, lambda: same) is Verdict.THEIRS
    assert judge(wrong, expected, lambda: expected) is Verdict.OURS


def test_of_several_tables_that_we_never_touched_one_that_shows_the_difference_is_enough() -> None:
    """A table whose timestamps an engine cannot read has a twin that it can: what is wrong there is not ours."""
    cannot, twin = Failure("cannot"), TWO_A_WRONG
    assert judge(A_WRONG, EXPECTED, lambda: cannot, lambda: twin) is Verdict.THEIRS
    assert judge(A_WRONG, EXPECTED, lambda: cannot, lambda: EXPECTED) is Verdict.OURS


def test_the_page_explains_a_message_once_under_whatever_headings_it_stands() -> None:
    message = "ShapeError: could not create a new DataFrame: height of column 'größe' (3) does not match"
    place = Place("partitions", "spark")
    results = [Result(place, "polars", "read", verdict, message) for verdict in (Verdict.KNOWN, Verdict.CANNOT)]
    lines = page({"versions": {}, "seconds": 60, "cores": 2}, results).splitlines()
    assert lines.count("- " + explain(results[0])) == 1
    assert len([line for line in lines if line.startswith("| polars |")]) == 2
