"""Rules of every format for joining Parquet files as bytes, and for outputs that have to be encoded.

Copying is exact only where all inputs are stored alike, to the last detail, and as the table wants its files. An output
that nothing merges again is final and must read well, so it is copied only if its row groups are large. The others are
merged again anyway. So the levels decode a byte at most once on its way to a full file, except where footers would
weigh more than data; an idle compaction may decode it once more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from actor.formats.parquet.footer_summary import FooterSummary
from shared.layout.planner import RewriteMode
from shared.policy.policy import KIB, MIB
from shared.refusals import Explained

FINAL_MODES = frozenset({RewriteMode.IDLE, RewriteMode.FULL})
"""Rewrites whose outputs are final whatever their size: as long as no new files come, nothing merges them again."""


class EncodeReason(Explained):
    """Why rows are decoded and encoded; reasons of single files are also the words that the JVM uses."""

    SWITCHED_OFF = "switched_off", "The table has `lakewright.row-group-copy = never`."
    UNAVAILABLE = (
        "unavailable",
        "Executors cannot run the classes that copy; the log's warning `row_group_copy_unavailable` has the cause.",
    )
    ROW_TRACKING = (
        "row_tracking",
        "Row ids have to be written into the files; on Iceberg once: then the files hold them.",
    )
    TYPE_WIDENING = "type_widening", "Files are older than the widening of a column, and get the table's type."
    ICEBERG_COMPATIBILITY = "iceberg_compatibility", "Files have to be as Iceberg's readers require them."
    FOLDER = (
        "folder",
        "Some readers take partition values from folders: the inputs' name them, the output's would not.",
    )
    ROW_ORDER = "row_order", "Rows have to be sorted by columns, or split among outputs."
    DELETION_VECTOR = (
        "deletion_vector",
        "Vectors hide more rows than may stay in a file (`delete-ratio-threshold`), or all of them are to be left out.",
    )
    DELETE_FILES = "delete_files", "Iceberg: a delete file applies to an input."
    NOT_PARQUET = "not_parquet", "Iceberg: an input is ORC or Avro, or `write.format.default` is not Parquet."
    SORT_ORDER = "sort_order", "Iceberg: the inputs declare different sort orders; outputs declare none."
    PARTITION = "partition", "Iceberg: the inputs' partition values have one key, and differ in their bits."
    NO_FIELD_IDS = "no_field_ids", "Iceberg: columns are found by `schema.name-mapping.default`, as in added files."
    ENCRYPTION = "encryption", "A file is encrypted."
    NO_FOOTER = "no_footer", "A file is not Parquet, or not of the size that the log names."
    DAMAGED = "damaged", "The footer of a file contradicts what it describes."
    DATA_ELSEWHERE = "data_elsewhere", "A file keeps columns in another file."
    INT96 = "int96", "Timestamps are `INT96`, which become microseconds."
    NANOSECONDS = "nanoseconds", "Timestamps are nanoseconds, which Delta's types do not have: they are refused."
    OLD_CALENDAR = (
        "old_calendar",
        "Days or instants are in the calendar before 1582; also files of Spark 2 beside others.",
    )
    SCHEMA = "schema", "Columns of the inputs differ in any detail; on Iceberg mostly: one was added or renamed."
    KEY_VALUES = "key_values", "Metadata in the footers differ, such as Spark's description of a row."
    WRITER = "writer", "The inputs differ in the name of their writer, or in the version of the format."
    COLUMNS = "columns", "Files have columns that were dropped; on Iceberg also milliseconds or unsigned integers."
    MIXED_CODECS = "mixed_codecs", "A column has several codecs."
    OTHER_CODEC = "other_codec", "A column has not the codec that the table's property names."
    SEVERAL_ROW_GROUPS = (
        "several_row_groups",
        "Beside deletion vectors (Delta), several row groups of the output would be smaller than 128 MiB on average.",
    )
    SMALL_ROW_GROUPS = "small_row_groups", "Row groups of a final output would be smaller than 4 MiB on average."
    SMALL_COLUMN_CHUNKS = (
        "small_column_chunks",
        "Row groups of a final output would have less than 128 KiB for each leaf column on average.",
    )
    DICTIONARIES = "dictionaries", "More than 5% of a final output would be dictionaries, which each row group repeats."
    LARGE_FOOTER = "large_footer", "The output would have more than 50,000 column chunks."


MERGED_REASONS = frozenset(
    {
        EncodeReason.WRITER,
        EncodeReason.KEY_VALUES,
        EncodeReason.SEVERAL_ROW_GROUPS,
        EncodeReason.SMALL_ROW_GROUPS,
        EncodeReason.SMALL_COLUMN_CHUNKS,
        EncodeReason.DICTIONARIES,
        EncodeReason.LARGE_FOOTER,
        EncodeReason.MIXED_CODECS,
        EncodeReason.OTHER_CODEC,
    }
)
"""Reasons not to copy that are known last: the inputs have the same columns, and nothing of any of them is unusual."""

OLD_CALENDAR_KEYS = frozenset({"org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"})

_NEW_CALENDAR_FROM = "3.0.0"
"""Version of Spark whose files are in the new calendar unless they say otherwise; compared as Spark does, as text."""


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """Limits of copied outputs.

    min_row_group_bytes: mean size of the row groups, compressed, of a final output. With 7 columns, 4 MiB is the
    smallest size from which no query of DuckDB, pyarrow and DataFusion takes more than 1.05 times what 32 MiB takes.
    min_column_chunk_bytes: the same for each leaf column, if that is more for all of them together. With 70 columns,
    two of them take 1.16 to 1.87 times the CPU time in chunks of 58 KiB, and 1.05 to 1.14 times in chunks of 117 KiB.
    min_row_group_bytes_with_vectors: the same of several row groups of any output where vectors hide rows:
    what a writer cuts. delta-rs up to 1.6.3 reads several row groups of a file in any order, or skips some, and applies
    vectors to other rows (https://github.com/delta-io/delta-rs/pull/4692; 1.6.6 does not).
    max_dictionary_share: of dictionaries in the bytes of a final output of several row groups. A table of which two of
    seven columns had long dictionaries took 1.4 times the bytes in row groups of 4 MiB, and 1.06 at 21 MiB.
    max_column_chunks: row groups times columns of any output. Each takes some 150 bytes in the footer, which every
    reader reads and parses as a whole: 8 MB.
    """

    min_row_group_bytes: int = 4 * MIB
    min_column_chunk_bytes: int = 128 * KIB
    min_row_group_bytes_with_vectors: int = 128 * MIB
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
class CopyRule:
    """Permission to copy row groups, and kind of output.

    full_bytes: size from which an output of the levels counts as full; 0: each does.
    """

    is_allowed: bool = True
    full_bytes: int = 0
    limits: CopyLimits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class NotCopied:
    """Why a group has to be encoded, and the footers of its inputs if they were read before that was known."""

    reason: EncodeReason
    files: Sequence[FooterSummary] = ()


def is_final(mode: RewriteMode, size_bytes: int, full_bytes: int) -> bool:
    """Return whether an output is one that nothing merges again, unless new files come to its partition."""
    return mode in FINAL_MODES or size_bytes >= full_bytes


def reason_in_footers(files: Sequence[FooterSummary]) -> EncodeReason | None:
    """Return what one of these files says of itself that forbids to join it to any other, None if none does."""
    obstacle = next((file.obstacle for file in files if file.obstacle), "")
    if obstacle:
        return EncodeReason(obstacle)
    return EncodeReason.OLD_CALENDAR if any(OLD_CALENDAR_KEYS & set(file.keys) for file in files) else None


def reason_between_footers(files: Sequence[FooterSummary]) -> EncodeReason | None:
    """Return how files that could be joined to others differ from each other, the worst first; None if they do not.

    With other key-value metadata, the output of files of an old Spark would be in another calendar than they are.
    """
    if len({file.columns for file in files}) > 1:
        return EncodeReason.SCHEMA
    has_other_values = len({(file.keys, file.key_values) for file in files}) > 1
    if has_other_values and any(file.spark and file.spark < _NEW_CALENDAR_FROM for file in files):
        return EncodeReason.OLD_CALENDAR
    if len({(file.schema, file.created_by) for file in files}) > 1:
        return EncodeReason.WRITER
    return EncodeReason.KEY_VALUES if has_other_values else None


def reason_in_codecs(files: Sequence[FooterSummary], wanted: str | None) -> EncodeReason | None:
    """Return why codecs forbid to join files of a table that wants one codec, or any (None).

    A file may mix codecs, one for each column, if all inputs do so alike and the table asks for none.
    """
    files = [file for file in files if file.row_groups]
    if wanted is not None and any(codec != wanted for file in files for codec in file.codecs):
        return EncodeReason.OTHER_CODEC
    if len({file.codecs for file in files}) > 1 or any("+" in codec for file in files for codec in file.codecs):
        return EncodeReason.MIXED_CODECS
    return None


def reason_in_sizes(
    files: Sequence[FooterSummary], *, final: bool, limits: CopyLimits, with_vectors: bool
) -> EncodeReason | None:
    """Return why an output of these files would not read well, None if it does, or is not final.

    with_vectors: rows of the table's files may be hidden by their positions, now or later.
    """
    row_groups, columns = sum(file.row_groups for file in files), len(files[0].codecs)
    if row_groups * columns > limits.max_column_chunks:
        return EncodeReason.LARGE_FOOTER
    data_bytes = sum(file.data_bytes for file in files)
    if with_vectors and row_groups > 1 and data_bytes < row_groups * limits.min_row_group_bytes_with_vectors:
        return EncodeReason.SEVERAL_ROW_GROUPS
    was_one_file = len(files) == 1  # As its writer wanted it.
    if was_one_file or not final:
        return None
    bound, reason = limits.row_group_bound(columns)
    if data_bytes < row_groups * bound:
        return reason
    repeated = sum(file.dictionary_bytes for file in files)
    return EncodeReason.DICTIONARIES if repeated > data_bytes * limits.max_dictionary_share else None
