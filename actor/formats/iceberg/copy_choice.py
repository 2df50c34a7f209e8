"""Whether a group's row groups are copied as bytes or its rows are encoded: one pure function.

Whatever is not provably exact is encoded by Spark. `copy_rules` has what holds for other formats as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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

PARQUET = "parquet"

ROW_ID, LAST_UPDATED = 2**31 - 1 - 107, 2**31 - 1 - 108
"""Field ids of the columns that keep, from format version 3 on, what a row would otherwise inherit from its file."""

LINEAGE_IDS = (ROW_ID, LAST_UPDATED)


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One input as its manifest describes it; `sort_order`: id of the order that its rows are declared to have.

    has_deletes: whether delete files apply to it, which are in manifests of their own.
    """

    format: str = PARQUET
    is_encrypted: bool = False
    sort_order: int = 0
    has_deletes: bool = False


PLAIN_ENTRY = ManifestEntry()
"""That of most files."""


@dataclass(frozen=True, slots=True)
class IcebergCandidate:
    """A group that may be copied: what the metadata say of its table and inputs, and what their footers say if read.

    mode: of the group's rewrite. bytes: of the inputs. full_bytes: size from which a file counts as full; 0: each does.
    mismatch: why the inputs' columns or partitions are not those of the table, as Iceberg compares them; empty: they
    are, or it is not known yet.
    """

    mode: RewriteMode
    bytes: int
    full_bytes: int
    format_version: int
    properties: Mapping[str, str]
    inputs: Sequence[ManifestEntry]
    is_allowed: bool = True
    is_available: bool = True
    files: Sequence[FooterSummary] | None = None
    mismatch: str = ""

    @property
    def is_final(self) -> bool:
        """Whether the output is one that nothing merges again, unless new files come to its partition."""
        return is_final(self.mode, self.bytes, self.full_bytes)

    def with_footers(self, files: Sequence[FooterSummary]) -> "IcebergCandidate":
        """Return the same candidate when its footers are known."""
        return replace(self, files=files)


def reason_to_encode(candidate: IcebergCandidate, limits: CopyLimits) -> EncodeReason | None:
    """Return why a group has to be encoded, None if copying its row groups is exact and leaves a file that reads well.

    Without footers only what the metadata hold is considered.
    """
    found = _reason_in_metadata(candidate)
    files = candidate.files
    if found is not None or files is None:
        return found
    return (
        reason_in_footers(files)
        or _reason_in_rows(files, candidate)
        or reason_in_codecs(files, candidate.properties.get("write.parquet.compression-codec", "").lower() or None)
        or reason_in_sizes(files, final=candidate.is_final, limits=limits)
    )


def _reason_in_metadata(candidate: IcebergCandidate) -> EncodeReason | None:
    formats = {one.format for one in candidate.inputs} | {candidate.properties.get("write.format.default", PARQUET)}
    found = {
        EncodeReason.SWITCHED_OFF: not candidate.is_allowed,
        EncodeReason.UNAVAILABLE: not candidate.is_available,
        EncodeReason.NOT_PARQUET: any(one.lower() != PARQUET for one in formats),
        EncodeReason.ENCRYPTION: any(one.is_encrypted for one in candidate.inputs),
        EncodeReason.DELETE_FILES: any(one.has_deletes for one in candidate.inputs),
        EncodeReason.SORT_ORDER: len({one.sort_order for one in candidate.inputs}) > 1,
    }
    return next((reason for reason, is_so in found.items() if is_so), None)


def _reason_in_rows(files: Sequence[FooterSummary], candidate: IcebergCandidate) -> EncodeReason | None:
    """Rows inherit their id and the sequence number of their last update from a file that does not hold them."""
    if candidate.mismatch:
        return EncodeReason(candidate.mismatch)
    inherits = any(file.rows and set(file.full_ids) != set(LINEAGE_IDS) for file in files)
    return EncodeReason.ROW_TRACKING if inherits and candidate.format_version >= 3 else None  # noqa: PLR2004
