"""Whether a group's row groups are copied as bytes or its rows are encoded: one pure function.

Whatever is not provably exact is encoded by Spark. `copy_rules` has what does not depend on the log.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from actor.formats.delta.log import TableShape
from actor.formats.delta.output_format import table_codec
from actor.formats.parquet.copy_rules import (
    CopyLimits,
    EncodeReason,
    is_final,
    reason_in_codecs,
    reason_in_footers,
    reason_in_sizes,
)
from actor.formats.parquet.footer_summary import FooterSummary
from shared.layout.planner import RewriteMode


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
        return is_final(self.mode, self.bytes, self.full_bytes)

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
    return _reason_in_files(files, candidate.shape) or reason_in_sizes(files, final=candidate.is_final, limits=limits)


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
    found = reason_in_footers(files)
    if found is not None:
        return found
    if set(files[0].top_level) - data_columns(shape):
        return EncodeReason.COLUMNS
    return reason_in_codecs(files, table_codec(shape.metadata.configuration))


def data_columns(shape: TableShape) -> frozenset[str]:
    """Return the names, as files spell them, of the columns that a table keeps in its files."""
    metadata = shape.metadata
    mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    schema = json.loads(json.loads(shape.metadata_json)["metaData"].get("schemaString") or '{"fields":[]}')
    names = {
        field["metadata"]["delta.columnMapping.physicalName"] if mapped else field["name"] for field in schema["fields"]
    }
    return frozenset(names - {column.physical for column in metadata.partition_columns})
