"""Whether a group's row groups are copied as bytes or its rows are encoded: one pure function, and every reason.

Copying is exact only where all inputs are stored alike, to the last detail, and as the table wants its files. Whatever
is not provably so is encoded by Spark. An output that nothing merges again is final and must read well, so it is copied
only if its row groups are large: one that becomes full, and whatever an idle or a requested full rewrite leaves. The
others are merged again anyway. So the levels decode a byte at most once on its way to a full file, except where footers
would weigh more than data; an idle compaction may decode it once more.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from actor.formats.delta.footer_summary import FooterSummary
from actor.formats.delta.log import TableShape
from actor.formats.delta.output_format import table_codec
from shared.layout.planner import RewriteMode
from shared.policy import KIB, MIB

FINAL_MODES = frozenset({RewriteMode.IDLE, RewriteMode.FULL})
"""Rewrites whose outputs are final whatever their size: as long as no new files come, nothing merges them again."""


class EncodeReason(StrEnum):
    """Why rows are decoded and encoded; those of single files are also the words that the JVM uses."""

    SWITCHED_OFF = "switched_off"  # The table's `lakewright.row-group-copy` is `never`.
    UNAVAILABLE = "unavailable"  # This actor cannot run the Java classes that copy; its log says why.
    ROW_TRACKING = "row_tracking"  # Row ids would have to be written into the files.
    TYPE_WIDENING = "type_widening"  # Files of before a column was widened are brought to the table's type.
    ICEBERG_COMPATIBILITY = "iceberg_compatibility"  # Files have to be as Iceberg's readers want them.
    FOLDER = "folder"  # Some readers take partition values from the inputs' folders; the output's would name none.
    ROW_ORDER = "row_order"  # Rows have to be sorted by columns, or split among outputs.
    DELETION_VECTOR = "deletion_vector"  # Deleted rows are left out.
    ENCRYPTION = "encryption"
    NO_FOOTER = "no_footer"  # Not a Parquet file, or not of the size that the log says.
    DAMAGED = "damaged"  # The footer and what it describes do not fit each other.
    DATA_ELSEWHERE = "data_elsewhere"  # The footer refers to columns in another file.
    INT96 = "int96"
    NANOSECONDS = "nanoseconds"  # Spark refuses them with the reason.
    OLD_CALENDAR = "old_calendar"  # Days or instants in the calendar before 1582, as a key of the footer says.
    SCHEMA = "schema"  # The inputs' schemas differ in any detail.
    KEY_VALUES = "key_values"  # Their key-value metadata differ, such as Spark's description of the row.
    WRITER = "writer"  # Different writers: readers work around errors of some of them, by the name in the footer.
    COLUMNS = "columns"  # Columns that the table has dropped, or its partition columns, are in the files.
    MIXED_CODECS = "mixed_codecs"  # A column has one codec here and another there.
    OTHER_CODEC = "other_codec"  # Not the codec that the table's property asks for.
    SMALL_ROW_GROUPS = "small_row_groups"  # Those of a final output would be below the bound of any table.
    SMALL_COLUMN_CHUNKS = "small_column_chunks"  # Those of a final output would be below the bound of so many columns.
    DICTIONARIES = "dictionaries"  # A final output would repeat in each row group what one dictionary could hold.
    LARGE_FOOTER = "large_footer"  # The output would have too many column chunks.


OLD_CALENDAR_KEYS = frozenset({"org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"})


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """What copied outputs may be like.

    min_row_group_bytes: mean size of the row groups, compressed, of a final output. With 7 columns, 4 MiB is the
    smallest size from which no query of DuckDB, pyarrow and DataFusion takes more than 1.05 times what 32 MiB takes.
    min_column_chunk_bytes: the same for each leaf column, if that is more for all of them together. With 70 columns,
    two of them take 1.16 to 1.87 times the CPU time in chunks of 58 KiB, and 1.05 to 1.14 times in those of 117 KiB.
    max_dictionary_share: of dictionaries in the bytes of a final output of several row groups. A table of which two of
    seven columns had long dictionaries took 1.4 times the bytes in row groups of 4 MiB, and 1.06 in those of 21 MiB.
    max_column_chunks: row groups times columns of any output. Each takes some 150 bytes in the footer, which every
    reader reads and parses as a whole: 8 MB.
    """

    min_row_group_bytes: int = 4 * MIB
    min_column_chunk_bytes: int = 128 * KIB
    max_dictionary_share: float = 0.05
    max_column_chunks: int = 50_000

    def row_group_bound(self, columns: int) -> tuple[int, EncodeReason]:
        """Return the least mean size in bytes of row groups of so many leaf columns, and the reason if it is missed."""
        of_columns = columns * self.min_column_chunk_bytes
        if of_columns > self.min_row_group_bytes:
            return of_columns, EncodeReason.SMALL_COLUMN_CHUNKS
        return self.min_row_group_bytes, EncodeReason.SMALL_ROW_GROUPS


DEFAULT_LIMITS = CopyLimits()


@dataclass(frozen=True, slots=True)
class CopyCandidate:
    """A group that may be copied: what the log says of its table and inputs, and what the footers say if they are read.

    mode: of the group's rewrite. bytes: of the inputs. full_bytes: size from which a file counts as full; 0: each does.
    loses_folder: the output would lie outside the Hive-style folders that name the inputs' partition.
    is_sorted: rows are to be sorted by columns, so their order is not that of the inputs.
    """

    shape: TableShape
    mode: RewriteMode
    bytes: int
    full_bytes: int
    has_deletion_vectors: bool
    is_sorted: bool = False
    is_allowed: bool = True
    is_available: bool = True
    loses_folder: bool = False
    files: Sequence[FooterSummary] | None = None

    @property
    def is_final(self) -> bool:
        """Whether the output is one that nothing merges again, unless new files come to its partition."""
        return self.mode in FINAL_MODES or self.bytes >= self.full_bytes

    def with_footers(self, files: Sequence[FooterSummary]) -> "CopyCandidate":
        """Return the same candidate when its footers are known."""
        return replace(self, files=files)


def reason_to_encode(candidate: CopyCandidate, limits: CopyLimits) -> EncodeReason | None:
    """Return why a group has to be encoded, None if copying its row groups is exact and leaves a file that reads well.

    Without footers only what the log holds is considered.
    """
    found = _reason_in_log(candidate)
    files = candidate.files
    if found is not None or files is None:
        return found
    return _reason_in_files(files, candidate.shape) or _reason_in_sizes(files, candidate, limits)


def _reason_in_log(candidate: CopyCandidate) -> EncodeReason | None:
    protocol = candidate.shape.protocol
    configuration = candidate.shape.metadata.configuration
    is_for_iceberg = any(
        name.startswith("delta.enableIcebergCompat") and on.lower() == "true" for name, on in configuration.items()
    )
    found = {
        EncodeReason.SWITCHED_OFF: not candidate.is_allowed,
        EncodeReason.UNAVAILABLE: not candidate.is_available,
        EncodeReason.FOLDER: candidate.loses_folder,
        EncodeReason.ROW_ORDER: candidate.is_sorted,
        EncodeReason.DELETION_VECTOR: candidate.has_deletion_vectors,
        EncodeReason.ROW_TRACKING: "rowTracking" in protocol.writer_features | protocol.reader_features,
        EncodeReason.ICEBERG_COMPATIBILITY: is_for_iceberg,
        EncodeReason.TYPE_WIDENING: "delta.typeChanges" in candidate.shape.metadata_json,
    }
    return next((reason for reason, is_so in found.items() if is_so), None)


def _reason_in_files(files: Sequence[FooterSummary], shape: TableShape) -> EncodeReason | None:
    found = next((reason for file in files if (reason := _reason_in_file(file, files[0])) is not None), None)
    if found is not None:
        return found
    if set(files[0].top_level) - data_columns(shape):
        return EncodeReason.COLUMNS
    return _reason_in_codecs([file for file in files if file.row_groups], table_codec(shape.metadata.configuration))


def _reason_in_file(file: FooterSummary, first: FooterSummary) -> EncodeReason | None:
    if file.obstacle:
        return EncodeReason(file.obstacle)
    if OLD_CALENDAR_KEYS & set(file.keys):
        return EncodeReason.OLD_CALENDAR
    if file.schema != first.schema:
        return EncodeReason.SCHEMA
    if file.created_by != first.created_by:
        return EncodeReason.WRITER
    return EncodeReason.KEY_VALUES if (file.keys, file.key_values) != (first.keys, first.key_values) else None


def _reason_in_codecs(files: Sequence[FooterSummary], wanted: str | None) -> EncodeReason | None:
    """A file may mix codecs, one for each column, if all inputs do so alike and the table asks for none."""
    if wanted is not None and any(codec != wanted for file in files for codec in file.codecs):
        return EncodeReason.OTHER_CODEC
    if len({file.codecs for file in files}) > 1 or any("+" in codec for file in files for codec in file.codecs):
        return EncodeReason.MIXED_CODECS
    return None


def _reason_in_sizes(
    files: Sequence[FooterSummary], candidate: CopyCandidate, limits: CopyLimits
) -> EncodeReason | None:
    row_groups, columns = sum(file.row_groups for file in files), len(files[0].codecs)
    if row_groups * columns > limits.max_column_chunks:
        return EncodeReason.LARGE_FOOTER
    was_one_file = len(files) == 1  # As its writer wanted it.
    if was_one_file or not candidate.is_final:
        return None
    data_bytes = sum(file.data_bytes for file in files)
    bound, reason = limits.row_group_bound(columns)
    if data_bytes < row_groups * bound:
        return reason
    repeated = sum(file.dictionary_bytes for file in files)
    return EncodeReason.DICTIONARIES if repeated > data_bytes * limits.max_dictionary_share else None


def data_columns(shape: TableShape) -> frozenset[str]:
    """Return the names, as files spell them, of the columns that a table keeps in its files."""
    metadata = shape.metadata
    mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    schema = json.loads(json.loads(shape.metadata_json)["metaData"].get("schemaString") or '{"fields":[]}')
    names = {
        field["metadata"]["delta.columnMapping.physicalName"] if mapped else field["name"] for field in schema["fields"]
    }
    return frozenset(names - {column.physical for column in metadata.partition_columns})
