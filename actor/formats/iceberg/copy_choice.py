"""Reasons in the metadata for and against copying row groups of an Iceberg table: one pure function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from actor.formats.parquet.copy_choice import CopyCandidate
from actor.formats.parquet.copy_rules import EncodeReason
from actor.formats.parquet.footer_summary import FooterSummary

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


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergCandidate(CopyCandidate):
    """A group of an Iceberg table.

    mismatch: why the inputs' columns or partitions are not the table's, as Iceberg compares them; empty: they
    are, or it is not known yet.
    """

    format_version: int
    properties: Mapping[str, str]
    inputs: Sequence[ManifestEntry]
    mismatch: str = ""

    @property
    def codec(self) -> str | None:
        """The codec that the table asks for, None if it asks for none."""
        return self.properties.get("write.parquet.compression-codec", "").lower() or None

    def in_metadata(self) -> Mapping[EncodeReason, bool]:
        """Return the reasons that the metadata give, in order, and whether each holds."""
        formats = {one.format for one in self.inputs} | {self.properties.get("write.format.default", PARQUET)}
        return {
            EncodeReason.NOT_PARQUET: any(one.lower() != PARQUET for one in formats),
            EncodeReason.ENCRYPTION: any(one.is_encrypted for one in self.inputs),
            EncodeReason.DELETE_FILES: any(one.has_deletes for one in self.inputs),
            EncodeReason.SORT_ORDER: len({one.sort_order for one in self.inputs}) > 1,
        }

    def in_columns(self, files: Sequence[FooterSummary]) -> EncodeReason | None:
        """Rows inherit their id and the sequence number of their last update from a file that does not hold them."""
        if self.mismatch:
            return EncodeReason(self.mismatch)
        inherits = any(file.rows and set(file.full_ids) != set(LINEAGE_IDS) for file in files)
        return EncodeReason.ROW_TRACKING if inherits and self.format_version >= 3 else None  # noqa: PLR2004
