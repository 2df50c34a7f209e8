"""The status of a Qbeast index, and why it may not be optimized, from a snapshot of its table alone."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from shared.formats import delta
from shared.formats.qbeast.files import FileClass
from shared.formats.qbeast.groups import eligible_groups
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import next_iteration
from shared.formats.qbeast.metrics import measure
from shared.formats.qbeast.names import LAST_REVISION, NOT_INDEXED
from shared.formats.qbeast.options import read_options
from shared.formats.qbeast.revisions import Revision
from shared.index_status import IndexRevision, IndexStatus, NextRewrite, UnindexedFiles
from shared.refusals import Refusal, RefusalCode
from shared.table import Snapshot

KIND = "qbeast"

DELETION_VECTORS = "deletionVectors"
"""The table feature under which rows may be deleted outside of data files."""


def index_status(
    snapshot: Snapshot, *, revision: int | None = None, budget_bytes: int | None = None
) -> IndexStatus | None:
    """Return the status of a table's index, None for a table without one.

    `revision` and `budget_bytes` replace the table's own options. Raises Corrupt where the revisions cannot be read,
    InvalidInput for a revision that the table does not have.
    """
    configuration = snapshot.metadata.configuration
    if LAST_REVISION not in configuration:
        return None
    index = QbeastIndex.of_snapshot(snapshot)
    options, issues = read_options(configuration)
    options = replace(options, revision=options.revision if revision is None else revision)
    options = replace(options, budget_bytes=options.budget_bytes if budget_bytes is None else budget_bytes)
    refused = refusal(snapshot, index)
    found = next_iteration(index, options)
    malformed = index.of_class(FileClass.MALFORMED)
    unindexed = index.of_class(FileClass.UNINDEXED)
    return IndexStatus(
        kind=KIND,
        version=snapshot.version,
        last_revision=index.revisions.last,
        revisions=tuple(
            _revision(index, one) for number, one in sorted(index.revisions.by_id.items()) if number > NOT_INDEXED
        ),
        files_by_class=_by_class(index),
        unindexed=UnindexedFiles(
            len(unindexed),
            sum(file.size_bytes for file in unindexed),
            min((file.modified_ms for file in unindexed), default=None),
        ),
        first_problem=f"{malformed[0].path}: {malformed[0].problem}" if malformed else "",
        refusal=refused,
        issues=issues,
        next=None
        if found is None or refused is not None
        else NextRewrite(found.strategy, found.paths, sum(file.size_bytes for file in found.files)),
    )


def refusal(snapshot: Snapshot, index: QbeastIndex) -> Refusal | None:
    """Return why the index of a table must not be optimized, None if it may be; of several reasons the first one."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    # The newest release does not read deletion vectors: a rewrite would bring deleted rows back.
    if DELETION_VECTORS in protocol.reader_features | protocol.writer_features:
        return _refusal(
            DELETION_VECTORS,
            "the table may have deletion vectors, which the library does not read: deleted rows would return",
            "Purge the deleted rows and drop the feature deletionVectors",
        )
    plain = delta.refusal(metadata, protocol)
    if plain is not None and plain.code is not RefusalCode.QBEAST:
        return plain
    if metadata.partition_columns:
        return _refusal("partitions", "the table is partitioned, which the library rejects", "Write it unpartitioned")
    if index.of_class(FileClass.LEGACY):
        return _refusal(
            "legacy-format",
            "the table has files that the library wrote before version 0.6, with one cube each and no blocks",
            "Write the table again with version 0.6 or later",
        )
    return None


def _refusal(subject: str, reason: str, action: str) -> Refusal:
    return Refusal(RefusalCode.QBEAST, subject, reason, action)


def _by_class(index: QbeastIndex) -> Mapping[str, int]:
    counts = Counter(file.kind for file in index.files)
    return {kind.value: counts[kind] for kind in FileClass}


def _revision(index: QbeastIndex, revision: Revision) -> IndexRevision:
    files = index.of_revision(revision.id)
    groups = eligible_groups(files, revision.space)
    waiting = {member.file.path: member.file.size_bytes for group in groups for member in group.members}
    columns = tuple(f"{column.name}:{column.kind}" for column in revision.columns)
    metrics = measure(files, revision)
    return IndexRevision(revision.id, revision.desired_cube_size, columns, metrics, len(groups), sum(waiting.values()))
