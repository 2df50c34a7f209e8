"""Iceberg tables that no rewrite may touch: one rule for decider, actor and command line, by metadata alone."""

from shared.formats.iceberg.names import (
    ENCRYPTION_KEY,
    FORMAT_VERSIONS,
    GENERATED_BY,
    MIXED_FORMAT,
    UNKNOWN_TRANSFORM,
    UNKNOWN_TYPE,
)
from shared.refusals import Refusal, RefusalCode
from shared.table import TableMetadata, TableProtocol


def refusal(metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
    """Return why a table must not be rewritten, None if it may be; of several reasons the first one."""
    if protocol.min_writer not in FORMAT_VERSIONS:
        return Refusal(
            RefusalCode.PROTOCOL,
            "format-version",
            f"the table has format version {protocol.min_writer}, which is unknown "
            f"(known: {FORMAT_VERSIONS.start} to {FORMAT_VERSIONS.stop - 1})",
            "Update Lakewright",
        )
    if metadata.configuration.get(ENCRYPTION_KEY):
        return Refusal(
            RefusalCode.FEATURE,
            "encryption",
            f"the table is encrypted ({ENCRYPTION_KEY} is set), and no rewrite of encrypted files was tested",
            "Rewrite it in the engine that encrypts it",
        )
    if mixed := min((name for name in metadata.configuration if name.startswith(MIXED_FORMAT)), default=""):
        return Refusal(
            RefusalCode.FEATURE,
            "mixed-format",
            f"this is a store of a table in Amoro's mixed format ({mixed} is set), whose files depend on each other",
            "Optimize it with Amoro",
        )
    for name, generator in GENERATED_BY.items():
        if name in metadata.configuration or name in protocol.writer_features:
            return Refusal(
                RefusalCode.FEATURE,
                "generated-metadata",
                f"the metadata are generated from those of another format by {generator} ({name} is there), which "
                "would bring replaced files back and remove ours",
                "Optimize the table in the format that it is written in",
            )
    return _unknown_feature(protocol)


def _unknown_feature(protocol: TableProtocol) -> Refusal | None:
    for feature in sorted(protocol.writer_features):
        if feature.startswith(UNKNOWN_TRANSFORM):
            name = feature.removeprefix(UNKNOWN_TRANSFORM)
            return Refusal(
                RefusalCode.FEATURE,
                "transform",
                f"a partition spec has the transform {name!r}, which Iceberg's specification does not know, so no "
                "one knows which partition a row belongs to",
                "Recreate the table with a transform of the specification, such as day",
            )
        if feature.startswith(UNKNOWN_TYPE):
            name = feature.removeprefix(UNKNOWN_TYPE)
            return Refusal(
                RefusalCode.FEATURE,
                "type",
                f"a column has the type {name!r}, which this release does not know",
                "Update Lakewright",
            )
    return None
