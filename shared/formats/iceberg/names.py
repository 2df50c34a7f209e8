"""Names and values that Iceberg tables carry: the format's, other systems', and ours."""

FORMAT = "iceberg"
"""Name of the format: in metadata, in jobs, and in what actors announce."""

FORMAT_VERSIONS = range(1, 4)
"""Versions of the format whose meaning is known here."""

MAIN = "main"
"""The branch that is followed and rewritten; no other one is."""

REPLACE = "replace"
"""The operation of a snapshot that changes no data."""

COMMIT_KEY = "lakewright"
"""Entry of a snapshot's summary that holds our `CommitMetadata`."""

TAGS_KEY = "lakewright.tags"
"""Entry of a snapshot's summary that holds the tags of the data files that it added; Iceberg's files have none."""

PROOFREAD_KEY = "lakewright.proofread"
"""Entry of a snapshot's summary that says by what its outputs were compared with their inputs: `rows`, `bytes` or, if
one of them was not compared, `unverified`."""

YIELD_KEY, YIELD = "polaris.internal.conflict-resolution.by-operation-type.replace", "rollback"
"""Entry of the summary of a `replace` snapshot that a catalog may undo for a writer, as Polaris and Lakekeeper do."""

SPEC_KEY = "#spec"
"""Entry of a partition key that names the partition spec; left out for the first one."""

CONVERTED_KEY = "lakewright.converted"
"""Entry of the summary of a snapshot of ours that turns deletes by value into positions: how many files it replaces.

By its operation it deletes rows, so that Iceberg compares it with rewrites that others began before; readers see the
same rows."""

ENCRYPTION_KEY = "encryption.key-id"
"""The property that turns on table encryption."""

MIXED_FORMAT = "mixed-format."
"""Prefix of the properties of Amoro's mixed format."""

PAIMON_SCHEMA = "schema/schema-0"
"""The file in a table's folder by which Apache Paimon's is known: older releases of it leave no other mark."""

GENERATED_BY = {
    "delta-version": "Delta's UniForm",
    "XTABLE_METADATA": "Apache XTable",
    "paimon-commit-identity": "Apache Paimon",
    PAIMON_SCHEMA: "Apache Paimon",
}
"""Marks of metadata that are generated from another format's, and what generates them: properties of the table,
entries in the summary of a snapshot, or the name of a file."""

UNKNOWN_TRANSFORM, UNKNOWN_TYPE = "transform:", "type:"
"""Prefixes of features that name a transform, or a type of a column, which the specification lacks."""

WRITE_KEY = "lakewright.write"
"""Entry of a snapshot's summary that names one attempt to write it: no other snapshot has the same."""

VACUUM_KEY = "lakewright-vacuum"
"""Property of a table that holds the `CommitMetadata` of its last whole vacuum; no snapshot could, for it makes none.
Its name is no setting's, so that it bears on no policy."""
