"""Names that a table with a Qbeast index carries in its Delta log."""

LAST_REVISION = "qbeast.lastRevisionID"
"""The property that marks a table with a Qbeast index: the number of its newest revision, 0 for one without any yet."""

REVISION_PREFIX = "qbeast.revision."
"""Prefix of the properties that describe one revision each, followed by its number."""

REVISION_TAG = "revision"
"""Tag of a file: number of the revision that it is indexed under, 0 for none."""

BLOCKS_TAG = "blocks"
"""Tag of a file: its blocks, as JSON text."""

LEGACY_CUBE_TAG = "cube"
"""Tag of a file that was written before version 0.6 of the library, with one cube and no blocks."""

NOT_INDEXED = 0
"""The revision of files that are not indexed yet."""
