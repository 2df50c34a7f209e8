"""Names of table properties: what they begin with, ours and others, and those that do more than set a value."""

PREFIX = "lakewright."
QBEAST = "use.optimization."
AMORO = "self-optimizing."
FOREIGN = (
    QBEAST,
    AMORO,
    "table-expire.",
    "data-expire.",
    "clean-orphan-file.",
    "clean-dangling-delete-files.",
    "snapshot.keep.",
    "table-trash.",
    "tag.auto-create.",
)
"""Prefixes of properties of other systems that are about optimization: none of them is dropped silently."""

QBEAST_SWITCH = QBEAST + "autoOptimize.enabled"
"""The switch whose removal switches a table off that it had switched on, as in Qbeast."""

REVISION_REWRITE = QBEAST + "revision-rewrite"
"""The property by which a run on request rewrites all files of an index at once."""

MANUAL = QBEAST + "type"
"""The property whose change starts one run of a table that is not optimized automatically."""
