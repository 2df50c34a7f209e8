"""Outputs of a rewrite are stored as their inputs were: same types, same codec, no statistic lost.

Inputs for which that is impossible are not rewritten: before the commit, the footers of inputs and outputs are compared
column by column (see `columns`).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.columns import Column, difference, folded
from actor.formats.delta.footers import Footers, Storage
from actor.formats.delta.log import TableShape
from actor.formats.delta.statistics import columns_to_complete, completed
from actor.formats.delta.stored_schema import columns_with_default
from shared.errors import RefusedFiles
from shared.refusals import RefusalReason

CODEC_PROPERTY = "delta.parquet.compression.codec"
CODECS = frozenset({"uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "zstd"})
"""Codecs that Delta's protocol names for that property and Spark can write everywhere; `none` means uncompressed."""


class OutputFormat:
    """Chooses and checks how the outputs of one table's groups are stored. Safe to use from several threads."""

    def __init__(self, footers: Footers, shape: TableShape, location: str) -> None:
        self._footers = footers
        self._metadata = shape.metadata
        self._defaults = columns_with_default(json.loads(shape.metadata_json)["metaData"])
        self._location = location

    def storage(self, inputs: Sequence[LoggedFile]) -> Storage:
        """Return how the inputs are stored; raises RefusedFiles if Spark could not write all of their values."""
        storage = self._footers.storage(inputs)
        self._require_defaults_unused(storage)
        for column in (column for schema in storage.schemas for column in schema):
            if column.kind == "timestamp" and column.detail[0] == "NANOS":
                raise RefusedFiles(
                    f"column {'.'.join(column.path)!r} of {self._location} is stored as {column}, finer than the "
                    "microseconds of Delta's types, so its files are not rewritten",
                    reason=RefusalReason.TYPES,
                    field=column.path[0],
                )
        return storage

    def _require_defaults_unused(self, inputs: Storage) -> None:
        """Raise RefusedFiles if an input lacks a column that Spark alone fills in with a default."""
        for name, physical in self._defaults.items():
            if any(physical not in {column.path[0] for column in columns} for columns in inputs.schemas):
                raise RefusedFiles(
                    f"files of {self._location} are not rewritten: some lack the column {name!r}, for which Spark "
                    "reads the column's default (EXISTS_DEFAULT) and other readers read null, and a rewrite would "
                    f"settle on one of them; write the column first by an UPDATE of Spark's that sets {name} to itself",
                    reason=RefusalReason.DEFAULTS,
                    field=name,
                )

    def codec(self, inputs: Storage) -> str | None:
        """Return the codec to write with: the table's own, else that with most input bytes; None leaves it to Spark."""
        return choose_codec(self._metadata.configuration, inputs.codec_bytes)

    def check(self, inputs: Storage, outputs: Sequence[LoggedFile]) -> Storage:
        """Return how the outputs are stored; raises RefusedFiles if that could change a value, a null or a field id."""
        written = self._footers.storage(outputs)
        if problems := self._problems(inputs, written):
            raise RefusedFiles(
                f"files of {self._location} are not rewritten, because it would change how values are stored: "
                f"{'; '.join(sorted(problems))}",
                reason=RefusalReason.TYPES,
                field="schemaString",
            )
        return written

    def may_stay(self, inputs: Storage) -> bool:
        """Return whether outputs that are stored as the inputs are would pass `check`."""
        return not self._problems(inputs, inputs)

    def _problems(self, inputs: Storage, written: Storage) -> set[str]:
        mapped = self._metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
        return {
            problem
            for columns in written.schemas
            for given in inputs.schemas
            for problem in differences(given, columns, mapped=mapped)
        }

    def complete(
        self, inputs: Sequence[LoggedFile], outputs: Sequence[LoggedFile], written: Storage
    ) -> tuple[LoggedFile, ...]:
        """Return the outputs, which are stored like this, with the statistics that Spark's Delta left out or cut."""
        given = [json.loads(logged.json).get("stats") or "" for logged in inputs]
        columns = [column for schema in written.schemas for column in schema]  # One write, one schema.
        adds = [json.loads(output.json) for output in outputs]
        wanted = [columns_to_complete(add.get("stats") or "", given, columns) for add in adds]
        self._footers.read_each([output for output, some in zip(outputs, wanted, strict=True) if some])
        each = zip(outputs, adds, wanted, strict=True)
        return tuple(self._completed(given, *one) if one[-1] else one[0] for one in each)

    def _completed(
        self, given: Sequence[str], output: LoggedFile, add: Mapping[str, Any], wanted: Sequence[Column]
    ) -> LoggedFile:
        final = {**add, "stats": completed(add.get("stats") or "", given, self._footers.bounds(output, wanted))}
        return LoggedFile(decode_add(final, self._metadata.partition_columns), encode(final))


def table_codec(configuration: Mapping[str, str]) -> str | None:
    """Return the codec that a table's property names, None if it names none that can be written."""
    named = configuration.get(CODEC_PROPERTY, "").lower()
    named = "uncompressed" if named == "none" else named
    return named if named in CODECS else None


def choose_codec(configuration: Mapping[str, str], codec_bytes: Mapping[str, int]) -> str | None:
    """Return the table's codec if its property names one, else the one of most input bytes, else None (Spark's own)."""
    named = table_codec(configuration)
    if named is not None:
        return named
    known = {codec: size for codec, size in codec_bytes.items() if codec in CODECS}
    return max(sorted(known), key=lambda codec: known[codec]) if known else None


def differences(given: Sequence[Column], written: Sequence[Column], *, mapped: bool) -> list[str]:
    """Return what a rewrite would lose; a column that one side lacks was added or dropped later."""
    by_id = {column.field_id: column for column in written if column.field_id is not None} if mapped else {}
    by_path = {column.path: column for column in written}
    by_folded = {folded(column.path): column for column in written}
    found = []
    for column in given:
        match = (
            (by_id.get(column.field_id) if column.field_id is not None else None)
            or by_path.get(column.path)
            or by_folded.get(folded(column.path))
        )
        problem = difference(column, match, mapped=mapped) if match is not None else ""
        if problem:
            found.append(problem)
    return found
