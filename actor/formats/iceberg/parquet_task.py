"""Calls of our Java classes for the Parquet files of one Iceberg table.

Files are read and written through the table's own file IO, and lie where its location provider puts them.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson
from pyspark.sql import SparkSession

from actor.formats.iceberg.cell_keys import RowKeys
from actor.formats.iceberg.column_merge import MergeSettings
from actor.formats.iceberg.copy_choice import LINEAGE_IDS
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import AppliedDelete, LiveInput
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.parquet.file_columns import DescribedFiles, decode_described
from actor.formats.parquet.footer_summary import THREADS
from actor.jvm.scala import jvm_context
from shared.table import DataFile


class IcebergTasks:
    """Calls for the files of one table; canceling a job tag of the thread ends what writes a file."""

    def __init__(self, scala: IcebergScala, session: SparkSession, table: JavaTable) -> None:
        self.session = session
        self._scala = scala
        self._table = table
        self._groups: dict[tuple[str, ...], Any] = {}  # Java's objects by the paths of their inputs.

    def columns(self, inputs: Sequence[LiveInput]) -> DescribedFiles:
        """Return what the footers of the inputs say, in their order."""
        return self._described(inputs, [(one.path, one.size_bytes) for one in inputs])

    def delete_columns(self, inputs: Sequence[LiveInput], deletes: Sequence[AppliedDelete]) -> DescribedFiles:
        """Return the same of delete files that apply to inputs."""
        return self._described(inputs, [(one.path, one.size_bytes) for one in deletes])

    def output_columns(self, inputs: Sequence[LiveInput], outputs: Sequence[DataFile]) -> DescribedFiles:
        """Return the same of the outputs of inputs."""
        return self._described(inputs, [(one.path, one.size_bytes) for one in outputs])

    def _described(self, inputs: Sequence[LiveInput], files: Sequence[tuple[str, int]]) -> DescribedFiles:
        paths, sizes = (json.dumps(given) for given in zip(*files, strict=True))
        found = self._group(inputs).columns(paths, sizes, THREADS, json.dumps(LINEAGE_IDS))
        return decode_described(_decoded(found))

    def check_pages(self, inputs: Sequence[LiveInput]) -> None:
        """Raise what copying raises for a page that differs from its checksum."""
        if inputs:
            self._group(inputs).checkPages(self._context[0])

    def mismatch(self, inputs: Sequence[LiveInput]) -> str:
        """Return why the columns or the partitions of inputs of one schema are not the table's."""
        return str(self._group(inputs).mismatch())

    def copy(self, inputs: Sequence[LiveInput], end_bytes: int) -> Mapping[str, Any]:
        """Copy the row groups of the inputs into a file below `end_bytes` (0: of any size) and return what it is."""
        return _decoded(self._group(inputs).copied(self._context[0], end_bytes))

    def merge(self, inputs: Sequence[LiveInput], how: MergeSettings, hidden: Any = None) -> Mapping[str, Any]:
        """Merge the inputs column by column and return what the file is, or its `obstacle`.

        hidden: the rows to leave out, as `JavaTable.hidden` returns them.
        """
        codec, settings = how
        made = self._group(inputs).merged(*self._context, json.dumps(dict(settings)), codec.upper(), hidden)
        return _decoded(made)

    def sample(self, inputs: Sequence[LiveInput], keys: RowKeys, hidden: Any, every: int) -> Mapping[str, Any]:
        """Return about each so many-th row of the inputs, but hidden ones, by its keys as `read`, or the `obstacle`."""
        given = json.dumps(keys.paths), hidden, self._scala.row_sample(every)
        return _decoded(self._group(inputs).read(*self._context, *given))

    def divide(
        self,
        inputs: Sequence[LiveInput],
        how: MergeSettings,
        keys: RowKeys,
        hidden: Any,
        cuts: Sequence[Any],
        prefixes: Sequence[str],
    ) -> Mapping[str, Any]:
        """Divide the rows along cuts (`actor.cells.outputs.cuts_of`); return the files as `outputs`, or the `obstacle`.

        how, hidden: as of a merge. prefixes: of the names of all outputs.
        """
        codec, settings = how
        given = json.dumps(dict(settings)), codec.upper(), json.dumps(keys.paths), hidden
        route = self._scala.cut_tree.of(json.dumps(cuts))
        return _decoded(self._group(inputs).divided(*self._context, *given, route, json.dumps(prefixes)))

    @cached_property
    def _context(self) -> tuple[Any, Any]:
        return jvm_context(self.session), self._scala.hadoop_conf(self.session)

    def describe(self, inputs: Sequence[LiveInput], path: str, size_bytes: int) -> Any:
        """Return Iceberg's object of an output, with the metrics that Iceberg's own writer would have given it."""
        return self._group(inputs).described(path, size_bytes)

    def describe_part(self, inputs: Sequence[LiveInput], path: str, size_bytes: int, columns: Sequence[int]) -> Any:
        """Return the same of one of several outputs; None if it has no bounds of one of these columns, by their ids."""
        return self._group(inputs).part(path, size_bytes, json.dumps(columns))

    def _group(self, inputs: Sequence[LiveInput]) -> Any:
        paths = tuple(one.path for one in inputs)
        if paths not in self._groups:
            made = self._scala.resolve("io.lakewright.iceberg.IcebergGroup")
            self._groups[paths] = made(self._table.raw, self._table.files(inputs))
        return self._groups[paths]


def _decoded(result: Any) -> Mapping[str, Any]:
    found: dict[str, Any] = orjson.loads(result)
    return found
