"""Names and values that Iceberg tables carry: those of the format, those of other systems, and ours."""

FORMAT = "iceberg"
"""Name of the format: in metadata, in jobs, and in what actors announce."""

FORMAT_VERSIONS = range(1, 4)
"""Versions of the format whose meaning is known here."""

MAIN = "main"
"""The branch that is followed and rewritten; no other one is."""

COMMIT_KEY = "lakewright"
"""Entry of a snapshot's summary that holds our `CommitMetadata`."""

TAGS_KEY = "lakewright.tags"
"""Entry of a snapshot's summary that holds the tags of the data files that it added; Iceberg's files have none."""

SPEC_KEY = "#spec"
"""Entry of a partition key that names the partition spec; left out for the first one."""

ENCRYPTION_KEY = "encryption.key-id"
"""The property that turns on table encryption."""

MIXED_FORMAT = "mixed-format."
"""What the properties of Amoro's mixed format begin with."""

GENERATED_BY = {"delta-version": "Delta's UniForm", "XTABLE_METADATA": "Apache XTable"}
"""Properties of tables whose metadata are generated from those of another format, and what generates them."""

WRITE_KEY = "lakewright.write"
"""Entry of a snapshot's summary that names one attempt to write it: no other snapshot has the same."""

VACUUM_KEY = "lakewright-vacuum"
"""Property of a table that holds the `CommitMetadata` of its last whole vacuum; no snapshot could, for it makes none.
Its name is not that of a setting, so that it bears on no policy."""
