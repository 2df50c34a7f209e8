"""The status of a Qbeast index, and why it may not be optimized, from a snapshot of its table alone."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from shared.errors import InvalidInput
from shared.formats import delta
from shared.formats.qbeast.files import FileClass, IndexFile
from shared.formats.qbeast.forecast import forecasts
from shared.formats.qbeast.groups import eligible_groups
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import IndexOptions, compacted_revision, next_iteration
from shared.formats.qbeast.metrics import measure
from shared.formats.qbeast.names import LAST_REVISION, NOT_INDEXED
from shared.formats.qbeast.options import read_options, revision_issue
from shared.formats.qbeast.revisions import Revision
from shared.formats.qbeast.sampling import sample_of, sampling_batches
from shared.index.status import (
    IndexQuery,
    IndexRevision,
    IndexRewrites,
    IndexStatus,
    NextRewrite,
    SampleReads,
    UnindexedFiles,
)
from shared.jobs.payload import INDEX
from shared.refusals import Refusal, RefusalCode
from shared.table import Snapshot

KIND = "qbeast"


def index_status(snapshot: Snapshot, query: IndexQuery) -> IndexStatus | None:
    """Return the status of a table's index, None for a table without one.

    A revision that the table's own properties name, and that cannot be optimized, is an issue and no rewrite follows.
    Raises Corrupt where the revisions cannot be read, InvalidInput for such a revision of the query, or a sample out of
    range.
    """
    configuration = snapshot.metadata.configuration
    if LAST_REVISION not in configuration:
        return None
    index = QbeastIndex.of_snapshot(snapshot)
    options, issues = read_options(configuration)
    if query.revision is not None:
        options = replace(options, revision=query.revision)
    if query.budget_bytes is not None:
        options = replace(options, budget_bytes=query.budget_bytes)
    if query.optimized_sample is not None:
        options = replace(options, sample=query.optimized_sample)
    refused = refusal(snapshot, index)
    try:
        rewrites = IndexRewrites() if refused is not None else _rewrites(index, options, query)
    except InvalidInput as problem:
        if query.revision is not None or problem.field != "revision":
            raise
        issues = (*issues, revision_issue(configuration, str(problem)))
        rewrites = IndexRewrites(problem=f"{problem}.")
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
            _bytes(unindexed),
            min((file.modified_ms for file in unindexed), default=None),
        ),
        first_problem=f"{malformed[0].path}: {malformed[0].problem}" if malformed else "",
        refusal=refused,
        issues=issues,
        rewrites=rewrites,
    )


def _rewrites(index: QbeastIndex, options: IndexOptions, query: IndexQuery) -> IndexRewrites:
    found = next_iteration(index, options)
    following = None if found is None else NextRewrite(found.strategy, found.paths, _bytes(found.files))
    revision = compacted_revision(index, options)
    if revision is None:
        return IndexRewrites(following)
    files = index.of_revision(revision.id) if query.is_forecast else ()
    fraction = query.sample if query.sample is not None or options.sample is None else float(options.sample)
    return IndexRewrites(
        following,
        None if query.sample is None else _sample(index, revision, query.sample, options),
        forecasts(files, revision, options.budget_bytes, fraction) if query.is_forecast else (),
    )


def _sample(index: QbeastIndex, revision: Revision, fraction: float, options: IndexOptions) -> SampleReads:
    files = index.of_revision(revision.id)
    sample = sample_of(files, fraction)
    read = [file for file in files if any(map(sample.takes, file.blocks))]
    batches = sampling_batches(files, revision, fraction, options.sampling_bytes)
    rewritten = [file for batch in batches for file in batch]
    return SampleReads(fraction, len(read), _bytes(read), len(rewritten), _bytes(rewritten))


def _bytes(files: Iterable[IndexFile]) -> int:
    return sum(file.size_bytes for file in files)


def refusal(snapshot: Snapshot, index: QbeastIndex) -> Refusal | None:
    """Return why the index of a table must not be optimized, None if it may be; of several reasons the first one."""
    plain = delta.refusal(snapshot.metadata, snapshot.protocol)
    if plain is not None and INDEX not in plain.allows:
        return plain
    if index.of_class(FileClass.LEGACY):
        return Refusal(
            RefusalCode.QBEAST,
            "legacy-format",
            "the table has files that the library wrote before version 0.6, with one cube each and no blocks",
            "Write the table again with version 0.6 or later",
        )
    return None


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
