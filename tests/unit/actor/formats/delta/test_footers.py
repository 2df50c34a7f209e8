"""Footers are read with a configuration of their own, each once, by executors or the driver."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add
from actor.formats.delta.chunk_bounds import Bounds
from actor.formats.delta.columns import Column
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.footers import Footers, SchemaCache, Storage
from actor.formats.parquet.file_columns import DescribedFiles, FileSchema, LeafCounts, ParquetField
from actor.formats.parquet.footer_summary import FooterSummary
from tests.support.fake_copies import FOOTER, FakeCopies
from tests.support.fake_delta import FakeTable, live_group
from tests.support.fake_delta_table import add

PARALLELISM = "parquet.metadata.read.parallelism"
ENCRYPTED = SimpleNamespace(
    describe=lambda files: DescribedFiles(tuple(FooterSummary(obstacle="encryption") for _ in files), {})
)
"""A reader of footers that only a key decrypts."""


class _Configuration(dict[str, str]):
    """Hadoop's configuration, which its constructor copies."""

    def set(self, name: str, value: str) -> None:
        self[name] = value


class _MetadataClass:
    """Class `ParquetMetadata`: a footer without columns, whatever it is made of."""

    def __call__(self, *_given: Any) -> Any:
        return self

    def toJSON(self, _footer: Any) -> str:  # noqa: N802 - Java's name
        return json.dumps({"fileMetaData": {"schema": {"fields": []}}})


class _Footers:
    """Stands for parquet-java: footers without columns or rows, and the configurations that they were read with."""

    def __init__(self) -> None:
        self.read_with: list[_Configuration] = []
        self.configurations_made = 0

    def resolve(self, name: str) -> Any:
        return {
            "org.apache.hadoop.conf.Configuration": self._configuration,
            "org.apache.hadoop.fs.FileStatus": lambda *given: given,
            "org.apache.parquet.hadoop.metadata.ParquetMetadata": _MetadataClass(),
            "org.apache.parquet.hadoop.ParquetFileReader": SimpleNamespace(readAllFootersInParallel=self._read),
        }[name]

    def java_list(self, items: Any) -> list[Any]:
        return list(items)

    def _configuration(self, other: _Configuration) -> _Configuration:
        self.configurations_made += 1
        return _Configuration(other)

    def _read(self, conf: _Configuration, statuses: list[Any], _skips_row_groups: bool) -> Any:
        self.read_with.append(conf)
        schema = SimpleNamespace(toString=lambda: "message m {}")
        metadata = SimpleNamespace(
            getFileMetaData=lambda: SimpleNamespace(getSchema=lambda: schema),
            getBlocks=lambda: SimpleNamespace(size=lambda: 0),
        )
        footer = SimpleNamespace(getParquetMetadata=lambda: metadata)
        return SimpleNamespace(toArray=lambda: [footer] * len(statuses))


def test_reading_footers_leaves_the_tables_shared_configuration_as_it_is() -> None:
    shared, scala = _Configuration({"fs.s3a.endpoint": "there"}), _Footers()
    log = SimpleNamespace(hadoop_conf=shared, data_path=lambda key: key.path)
    footers = Footers(scala, log, ENCRYPTED)  # type: ignore[arg-type]
    add = {"path": "f", "size": 1, "partitionValues": {}, "modificationTime": 5}
    file = LoggedFile(decode_add(add, ()), json.dumps(add))
    footers.storage([file] * 65)  # One more than one call reads.
    assert footers.storage([file]) == Storage(((),), {})
    assert shared == {"fs.s3a.endpoint": "there"}
    assert scala.read_with == [{"fs.s3a.endpoint": "there", PARALLELISM: "8"}] * 3
    assert scala.configurations_made == 1


class _JavaList:
    """A list of Java's with one item."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def size(self) -> int:
        return 1

    def get(self, _number: int) -> Any:
        return self._item


class _CountedFooters(Footers):
    """Footers of files whose only column is named by their path."""

    def __init__(self, cache: SchemaCache) -> None:
        super().__init__(None, None, ENCRYPTED, cache)  # type: ignore[arg-type]
        self.read: list[str] = []

    def _read(self, files: Sequence[LoggedFile]) -> Iterator[Any]:
        self.read += [logged.file.path for logged in files]
        chunk = SimpleNamespace(getCodec=lambda: SimpleNamespace(name=lambda: "GZIP"))
        blocks = _JavaList(SimpleNamespace(getColumns=lambda: _JavaList(chunk)))
        yield from (SimpleNamespace(path=logged.file.path, getBlocks=lambda: blocks) for logged in files)

    def _columns(self, footer: Any) -> tuple[Column, ...]:
        return (column(footer.path),)


def column(name: str) -> Column:
    return Column((name,), "INT32", "int")


def test_the_columns_of_a_schema_are_read_once_for_all_tables_of_an_actor() -> None:
    cache = SchemaCache(max_schemas=2)
    asked = [("first", "a"), ("second", "b"), ("first", "not read"), ("third", "c"), ("first", "d"), ("second", "e")]
    read, found = [], []
    for digest, path in asked:
        add = {"path": path, "size": 1, "partitionValues": {}, "modificationTime": 5}
        footers = _CountedFooters(cache)
        found += footers.columns(digest, LoggedFile(decode_add(add, ()), json.dumps(add)))
        read += footers.read
    # Of two, the one is evicted that was not asked for lately.
    assert read == ["a", "b", "c", "e"]
    assert found == [column(name) for name in ("a", "b", "a", "c", "a", "e")]


def test_one_description_of_files_says_how_they_are_stored_and_their_bounds() -> None:
    asked: list[list[str]] = []
    leaf = ParquetField("a", physical="INT32", leaf=LeafCounts(9, 1, is_bounded=True, least="2", greatest="7"))
    summaries = {
        "a": FooterSummary(schema="first", codecs=("zstd",)),
        "b": FooterSummary(schema="second", codecs=("snappy",)),
        "c": FooterSummary(schema="first", codecs=("",)),
        "d": FooterSummary(obstacle="no_footer"),
    }

    def describe(files: Sequence[LoggedFile]) -> DescribedFiles:
        asked.append([logged.file.path for logged in files])
        described = tuple(summaries[logged.file.path] for logged in files)
        return DescribedFiles(described, {one.schema: FileSchema((leaf,)) for one in described if one.schema})

    cache = SchemaCache()
    footers = _CountedFooters(cache)
    footers._reader = SimpleNamespace(describe=describe)  # type: ignore[assignment]
    a, b, c, d = (file_of(name) for name in "abcd")
    stored = footers.storage([a, b, c])
    assert stored == Storage(((column("c"),), (column("b"),)), {"zstd": 5, "snappy": 5})
    assert footers.storage([a]) == Storage(((column("c"),),), {"zstd": 5})
    assert footers.bounds(a, [column("c")]) == {column("c"): Bounds(2, 7, 1)}
    assert footers.read == ["c", "b"], "once for each schema"
    with_odd = footers.storage([a, d])
    assert with_odd == Storage(((column("a"),), (column("d"),)), {"gzip": 10}), (
        "what our class does not read, parquet-java does"
    )


def file_of(path: str) -> LoggedFile:
    body = {"path": path, "size": 5, "partitionValues": {}, "modificationTime": 5}
    return LoggedFile(decode_add(body, ()), json.dumps(body))


class Bench:
    """Two files, and a reader of their footers."""

    def __init__(self) -> None:
        table = FakeTable()
        table.commit(add("x"), add("y"))
        self.scala = FakeCopies(table, (FOOTER, FOOTER), {})
        self.files = live_group(table, "x", "y").inputs
        self.reader = FooterReader(cast("Any", self.scala), table.log())


def test_the_same_footers_are_read_once_for_a_whole_rewrite() -> None:
    bench = Bench()
    assert [one.rows for one in bench.reader.read(bench.files)] == [10, 10]
    assert (len(bench.reader.describe(bench.files).files), len(bench.scala.summaries_read)) == (2, 1)
    assert bench.reader.rows(bench.files) == 20
    bench.reader.describe(bench.files[:1])
    assert len(bench.scala.summaries_read) == 2, "other files are others"


def test_files_that_are_read_at_once_are_known_each_by_itself() -> None:
    bench = Bench()
    asked: list[list[str]] = []

    def each_footer(_conf: Any, paths: str, *_given: Any) -> str:
        asked.append([Path(path).name for path in json.loads(paths)])
        return json.dumps([{"files": [FOOTER | {"rows": 3}], "schemas": {}} for _ in asked[-1]])

    bench.scala.group.eachFooter = each_footer
    footers = Footers(cast("Any", bench.scala), cast("Any", None), bench.reader)
    del bench.scala.footers[1]
    assert bench.reader.rows(bench.files[:1]) == 10
    for _ in range(2):
        footers.read_each(bench.files)
    assert asked == [["y"]], "the other one was read before"
    assert [bench.reader.rows([file]) for file in bench.files] == [10, 3]
    assert len(bench.scala.summaries_read) == 1


def test_nothing_is_kept_of_a_group_that_is_written() -> None:
    bench = Bench()
    bench.reader.read(bench.files)
    bench.reader.describe(bench.files[:1])
    bench.reader.forget(bench.files[1:])
    assert bench.reader.take(bench.files) is None
    bench.reader.describe(bench.files[:1])
    assert len(bench.scala.summaries_read) == 2, "what holds none of its files stays"
    bench.reader.describe(bench.files)
    assert len(bench.scala.summaries_read) == 3


@pytest.mark.parametrize("odd", [{"obstacle": "damaged"}, {"schema": "", "obstacle": "no_footer"}])
def test_rows_are_those_of_footers_that_say_them_for_certain(odd: dict[str, str]) -> None:
    bench = Bench()
    bench.scala.footers[1] = FOOTER | odd
    assert bench.reader.rows(bench.files) is None
    unusual = Bench()
    unusual.scala.footers[1] = FOOTER | {"obstacle": "int96"}
    assert unusual.reader.rows(unusual.files) == 20
