"""Rows are divided among files by their keys, column by column: each has its values and its place, and none is lost."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from actor.formats.delta.delta_scala import DeltaScala
from actor.jvm.scala import jvm_context
from tests.contract.test_parquet_footers import texts_of
from tests.support.delta_lab import DeltaLab

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.int32()),
        ("s", pa.struct([("t", pa.string())])),
        ("l", pa.list_(pa.int64())),
        ("d", pa.float64()),
    ]
)
KEYS = [["k"], ["s", "t"]]


def row(number: int) -> dict[str, Any]:
    """A row of which any value may be null, a list empty, and a key one of few."""
    text = None if number % 7 == 0 else {"t": None if number % 5 == 0 else "äz"[number % 2] * (number % 4)}
    key = None if number % 11 == 0 else number % 9 - 4
    items = None if number % 3 == 0 else list(range(number % 4))
    return {"id": number, "k": key, "s": text, "l": items, "d": None if number % 13 == 0 else number / 7}


def write(folder: Path, count: int, *, group_rows: int = 100) -> list[Path]:
    """Write so many files of 250 rows."""
    files = [folder / f"in-{number}.parquet" for number in range(count)]
    for number, file in enumerate(files):
        rows = [row(one) for one in range(number * 250, number * 250 + 250)]
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), file, row_group_size=group_rows)
    return files


class Scatter:
    """Calls of the task on files; `said` is what the last call returned."""

    def __init__(self, lab: DeltaLab, *, block_bytes: int = 1 << 27) -> None:
        self.out = lab.directory / "out"
        self._scala = DeltaScala(lab.spark)
        self._context = jvm_context(lab.spark)
        made = self._scala.resolve("org.apache.hadoop.conf.Configuration")
        self._conf = made(lab.spark._jsc.hadoopConfiguration())
        self._conf.set("parquet.block.size", str(block_bytes))
        self.said: Mapping[str, Any] = {}

    def __call__(
        self, files: Sequence[Path], hidden: Sequence[Sequence[int]], cuts: Sequence[Sequence[Any]], outputs: int
    ) -> dict[int, list[dict[str, Any]]]:
        """Return the rows of each output by its number, from 5 on."""
        where = f"file://{self.out}", "lw-", ".parquet", "SNAPPY"
        keys = self._hidden(hidden), json.dumps(KEYS), self._scala.cut_tree.of(json.dumps(cuts))
        text = self._scala.group.scattered(self._context, self._conf, *texts_of(files), *where, *keys, 5, outputs)
        self.said = json.loads(text)
        made = self.said.get("outputs", [])
        assert sorted(one["name"] for one in made) == sorted(file.name for file in self.out.glob("*"))
        found = {int(one["name"].split("-")[2]): pq.read_table(self.out / one["name"]) for one in made}
        assert sorted(table.num_rows for table in found.values()) == sorted(one["rows"] for one in made)
        return {number: table.to_pylist() for number, table in found.items()}

    def _hidden(self, rows: Sequence[Sequence[int]]) -> Any:
        positions = self._scala.resolve("java.lang.Class").forName("[[J")
        read = self._scala.resolve("io.lakewright.spark.Json").read
        return self._scala.resolve("io.lakewright.parquet.HiddenRows")(read(json.dumps(rows), positions))

    def sample(self, files: Sequence[Path], hidden: Sequence[Sequence[int]], every: int) -> list[list[Any]]:
        keys = self._hidden(hidden), json.dumps(KEYS), self._scala.row_sample(every)
        said = json.loads(self._scala.group.read(self._context, self._conf, *texts_of(files), *keys))
        rows: list[list[Any]] = said["read"]
        return rows


CUTS = [[0, 0, 1, -3], [1, "c3a4", -1, -2]]
"""Below zero by the text, into the outputs 0 and 1; all others into the output 2."""


def place(one: Mapping[str, Any]) -> int:
    """The output of a row by `CUTS`: null is below all."""
    if one["k"] is not None and one["k"] >= 0:
        return 7
    text = (one["s"] or {}).get("t")
    return 5 if text is None or text.encode() < "ä".encode() else 6


def by_place(rows: Sequence[Mapping[str, Any]], place_of: Callable[[Mapping[str, Any]], int]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for one in rows:
        found.setdefault(place_of(one), []).append(one)
    return found


def sorted_by_id(found: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[int, list[Mapping[str, Any]]]:
    return {number: sorted(rows, key=lambda one: one["id"]) for number, rows in found.items()}


@pytest.mark.parametrize("block_bytes", [1 << 27, 2000])
def test_each_row_has_its_place_and_its_values_and_hidden_rows_have_none(lab: DeltaLab, block_bytes: int) -> None:
    files = write(lab.directory, 3)
    hidden = [[0, 99, 100, 249], [], list(range(250))]
    scatter = Scatter(lab, block_bytes=block_bytes)
    found = scatter(files, hidden, CUTS, 3)
    left = [row(number) for number in range(500) if number not in hidden[0]]
    assert sorted_by_id(found) == by_place(left, place)
    row_groups = sum(one["row_groups"] for one in scatter.said["outputs"])
    assert row_groups == 3 if block_bytes > 2000 else row_groups > 3, "they end early where memory is short"


def test_without_a_cut_all_rows_are_in_one_output_and_one_without_rows_is_no_file(lab: DeltaLab) -> None:
    files = write(lab.directory, 2)
    scatter = Scatter(lab)
    assert sorted_by_id(scatter(files, [[], []], [], 1)) == {5: [row(number) for number in range(500)]}
    for file in scatter.out.glob("*"):
        file.unlink()
    assert scatter(files, [list(range(250))] * 2, CUTS, 3) == {}


def test_about_each_so_many_th_row_that_is_not_hidden_is_read_by_its_keys(lab: DeltaLab) -> None:
    files, hidden = write(lab.directory, 2), [[1, 3], []]
    left = [row(number) for number in range(500) if number not in (1, 3)]
    texts = [one["s"]["t"] if one["s"] else None for one in left]
    spelled = [[one["k"], None if text is None else text.encode().hex()] for one, text in zip(left, texts, strict=True)]
    scatter = Scatter(lab)
    assert scatter.sample(files, hidden, 1) == spelled
    found = scatter.sample(files, hidden, 2)
    assert 200 < len(found) < 300
    assert all(one in spelled for one in found)
    assert any(one in found for one in spelled[::2])
    assert any(one in found for one in spelled[1::2]), "keys may take turns"


@pytest.mark.parametrize("what", ["a vector beyond the file", "other columns", "a key of another type"])
def test_what_cannot_be_exact_is_an_obstacle_and_leaves_no_file(lab: DeltaLab, what: str) -> None:
    files = write(lab.directory, 2)
    hidden: list[list[int]] = [[], [250]] if what == "a vector beyond the file" else [[], []]
    if what == "other columns":
        pq.write_table(pq.read_table(files[1]).drop_columns(["l"]), files[1])
    if what == "a key of another type":
        changed = SCHEMA.set(1, pa.field("k", pa.float32()))
        for file in files:
            pq.write_table(pq.read_table(file).cast(changed), file)
    scatter = Scatter(lab)
    assert scatter(files, hidden, CUTS, 3) == {}
    assert "obstacle" in scatter.said


def test_a_page_that_differs_from_its_checksum_is_no_row(lab: DeltaLab) -> None:
    files = write(lab.directory, 1)
    table = pq.read_table(files[0])
    pq.write_table(table, files[0], compression="none", use_dictionary=False, write_page_checksum=True)
    content = files[0].read_bytes()
    at = content.index((7).to_bytes(8, "little") + (8).to_bytes(8, "little"))
    files[0].write_bytes(content[:at] + b"\x09" + content[at + 1 :])
    scatter = Scatter(lab)
    with pytest.raises(Exception, match="differs from its checksum"):
        scatter(files, [[]], CUTS, 3)
    assert list(scatter.out.glob("*")) == []
