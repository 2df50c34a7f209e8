"""The status of an index, and the tables whose index must not be optimized."""

import random
from dataclasses import replace

import pytest

from shared.errors import Corrupt, InvalidInput
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.status import index_status, refusal
from shared.formats.registry import support_of
from shared.index.signal import IndexSignal
from shared.index.status import IndexQuery, IndexRewrites, NextRewrite
from shared.partitions import WHOLE_TABLE
from shared.refusals import RefusalCode
from shared.table import DataFile, PartitionColumn, Snapshot, TableProtocol
from tests.support.qbeast_tree import QbeastTree, configuration

PLAIN = IndexQuery()


def tree() -> QbeastTree:
    made = QbeastTree(random.Random(7), cube_size=20)
    for _ in range(6):
        made.append(made.new_rows(25))
    return made


def with_file(tags: dict[str, str]) -> Snapshot:
    snapshot = tree().snapshot()
    return replace(snapshot, files=(*snapshot.files, DataFile("odd", 9, WHOLE_TABLE, modified_ms=5, tags=tags)))


def test_a_table_without_an_index_has_no_status_in_any_format() -> None:
    snapshot = tree().snapshot()
    plain = replace(snapshot, metadata=replace(snapshot.metadata, configuration={}))
    assert index_status(plain, PLAIN) is None
    assert support_of("delta").index_status(plain, PLAIN) is None
    assert support_of("iceberg").index_status(snapshot, PLAIN) is None


def test_the_status_shows_revisions_files_and_the_next_rewrite() -> None:
    made = tree()
    found = index_status(made.snapshot(), PLAIN)
    assert found is not None
    revision = found.revisions[0]
    assert (found.kind, found.version, found.last_revision) == ("qbeast", 6, 1)
    assert (revision.id, revision.desired_cube_size, revision.metrics.rows) == (1, 20, 150)
    assert revision.columns == ("price:linear", "user:linear")
    assert revision.eligible_groups > 0
    assert 0 < revision.eligible_bytes <= revision.metrics.bytes
    assert found.rewrites.next is not None
    assert found.rewrites.next.strategy == "leveled"
    assert found.rewrites.next.bytes == sum(made.files[path].size_bytes for path in found.rewrites.next.paths)
    assert found.files_by_class["indexed"] == len(made.files)
    assert (found.unindexed.files, found.unindexed.oldest_ms, found.first_problem) == (0, None, "")


def test_files_that_are_not_indexed_are_counted_and_next_and_a_budget_selects_fewer() -> None:
    snapshot = with_file({})
    found = index_status(snapshot, PLAIN)
    assert found is not None
    assert found.rewrites.next is not None
    assert (found.rewrites.next.strategy, found.rewrites.next.paths) == ("unindexed", ("odd",))
    assert (found.unindexed.files, found.unindexed.bytes, found.unindexed.oldest_ms) == (1, 9, 5)
    fewer = index_status(tree().snapshot(), IndexQuery(1, 1))
    more = index_status(tree().snapshot(), PLAIN)
    assert fewer is not None
    assert more is not None
    assert fewer.rewrites.next is not None
    assert more.rewrites.next is not None
    assert fewer.rewrites.next.bytes < more.rewrites.next.bytes
    with pytest.raises(InvalidInput, match="no revision 9"):
        index_status(tree().snapshot(), IndexQuery(9))


def test_a_table_with_nothing_to_do_has_no_next_rewrite() -> None:
    made = QbeastTree(random.Random(7), cube_size=20)
    made.append(made.new_rows(3))
    found = index_status(made.snapshot(), PLAIN)
    assert found is not None
    assert (found.rewrites.next, found.refusal, found.issues) == (None, None, ())


def test_a_damaged_file_is_named_and_left_alone() -> None:
    found = index_status(with_file({"revision": "1", "blocks": "[{}]"}), PLAIN)
    assert found is not None
    assert found.first_problem.startswith("odd: ")
    assert found.files_by_class["malformed"] == 1
    assert found.rewrites.next is not None
    assert "odd" not in found.rewrites.next.paths


@pytest.mark.parametrize(
    ("protocol", "subject"),
    [
        (TableProtocol(1, 7, frozenset(), frozenset({"clustering"})), "clustering"),
        (TableProtocol(9, 9), "protocol"),
    ],
)
def test_a_table_whose_protocol_forbids_rewrites_is_refused(protocol: TableProtocol, subject: str) -> None:
    found = index_status(replace(tree().snapshot(), protocol=protocol), PLAIN)
    assert found is not None
    assert found.refusal is not None
    assert (found.refusal.subject, found.rewrites.next) == (subject, None)


def test_partitions_and_the_old_format_are_refused() -> None:
    snapshot = tree().snapshot()
    partitioned = replace(snapshot.metadata, partition_columns=(PartitionColumn("d", "d", "date"),))
    for refused, subject in (
        (replace(snapshot, metadata=partitioned), "partitions"),
        (with_file({"cube": "w", "revision": "1"}), "legacy-format"),
    ):
        found = refusal(refused, QbeastIndex.of_snapshot(refused))
        assert found is not None
        assert found.key == f"{RefusalCode.QBEAST}:{subject}"
    assert refusal(snapshot, QbeastIndex.of_snapshot(snapshot)) is None


def test_revisions_that_cannot_be_read_are_an_error() -> None:
    snapshot = tree().snapshot()
    damaged = snapshot.metadata.configuration | {"qbeast.revision.1": "{"}
    with pytest.raises(Corrupt):
        index_status(replace(snapshot, metadata=replace(snapshot.metadata, configuration=damaged)), PLAIN)


def test_a_sample_shows_what_it_reads_and_what_a_rewrite_would_lower() -> None:
    made = tree()
    found = index_status(made.snapshot(), IndexQuery(sample=0.1))
    assert found is not None
    reads = found.rewrites.sample
    assert reads is not None
    assert 0 < reads.files <= len(made.files)
    assert 0 < reads.rewrite_files <= len(made.files)
    assert 0 < reads.rewrite_bytes <= found.revisions[0].metrics.bytes
    with pytest.raises(InvalidInput, match="sample"):
        index_status(made.snapshot(), IndexQuery(sample=1.5))
    assert index_status(made.snapshot(), IndexQuery(revision=0, sample=0.1)) is not None


def test_a_revision_of_the_tables_own_that_cannot_be_optimized_is_ignored_and_no_rewrite_follows() -> None:
    """Its owner may have meant it for another optimizer, and what others ask about the table is answered."""
    snapshot, name = tree().snapshot(), "use.optimization.autoOptimize.revisionId"
    own = replace(snapshot.metadata, configuration={**snapshot.metadata.configuration, name: "9"})
    found = index_status(replace(snapshot, metadata=own), IndexQuery(sample=0.1))
    assert found is not None
    (issue,) = found.issues
    assert (issue.property, issue.value) == (name, "9")
    assert "no revision 9" in issue.reason
    assert found.rewrites.next is None
    assert IndexSignal.of(found).refusal == f"{issue.reason}."


def test_an_index_without_a_revision_yet_has_files_to_index_and_no_sample_or_forecast() -> None:
    """Its table was created for the library, and another writer was the first to append."""
    made = QbeastTree(random.Random(7), cube_size=20)
    made.append_plainly(made.new_rows(5))
    snapshot = made.snapshot()
    first = {name: value for name, value in configuration(20, last=0).items() if not name.endswith(".1")}
    created = replace(snapshot, metadata=replace(snapshot.metadata, configuration=first))
    found = index_status(created, IndexQuery(sample=0.1, is_forecast=True))
    assert found is not None
    assert (found.last_revision, found.revisions, found.unindexed.files) == (0, (), 1)
    (path,) = made.files
    assert found.rewrites == IndexRewrites(NextRewrite("unindexed", (path,), made.files[path].size_bytes))
