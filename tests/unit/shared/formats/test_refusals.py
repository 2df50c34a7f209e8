"""Which tables are refused is one rule of metadata and protocol, with the culprit and what to do about it."""

import pytest

from shared.formats.delta import SAFE_FEATURES, refusal
from shared.jobs.payload import CHECKPOINT, CLUSTER, COMPACT, DEDUPLICATE, INDEX, SORT, VACUUM
from shared.layout.eligibility import Reason, evaluate_full, evaluate_idle, evaluate_layout
from shared.layout.partition_stats import CUBE_TAG, EMPTY_STATS, PartitionStats, stats_of_file, stats_of_files
from shared.layout.planner import plan, plan_full, plan_idle_compaction
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from shared.refusals import RefusalCode
from shared.table import DataFile, PartitionColumn, TableMetadata, TableProtocol

PLAIN = TableMetadata("u")
POLICY = Policy(target_bytes=8 * MIB)


def with_features(*features: str) -> TableProtocol:
    return TableProtocol(3, 7, frozenset(features), frozenset(features))


@pytest.mark.parametrize("feature", ["clustering", "variantType", "icebergCompatV3", "catalogManaged", "unheardOf"])
def test_a_feature_that_is_not_known_to_be_safe_is_refused_by_name_with_what_to_do(feature: str) -> None:
    found = refusal(PLAIN, with_features("deletionVectors", feature))
    assert found is not None
    assert (found.code, found.subject) == (RefusalCode.FEATURE, feature)
    assert feature in found.message
    assert found.action in found.message


def test_a_log_that_xtable_generates_is_refused() -> None:
    found = refusal(TableMetadata("id", (), {"XTABLE_METADATA": "{}"}), TableProtocol(1, 2))
    assert found is not None
    assert (found.subject, "Apache XTable" in found.reason) == ("generated-metadata", True)


def test_a_feature_of_writers_alone_is_refused_too() -> None:
    found = refusal(PLAIN, TableProtocol(3, 7, frozenset({"deletionVectors"}), frozenset({"clustering"})))
    assert found is not None
    assert found.subject == "clustering"


def test_a_clustered_table_allows_no_exact_rewrite_but_three_kinds_of_jobs() -> None:
    found = refusal(PLAIN, with_features("deletionVectors", "clustering"))
    assert found is not None
    assert found.allows == (CLUSTER, VACUUM, CHECKPOINT)
    assert not {COMPACT, SORT, DEDUPLICATE} & {*found.allows}


@pytest.mark.parametrize("other", ["variantType", "catalogManaged", "a-later-one"])
def test_a_clustered_table_with_another_unsafe_feature_allows_nothing(other: str) -> None:
    found = refusal(PLAIN, with_features("clustering", other))
    assert found is not None
    assert (found.subject, found.allows) == (other, ())


def test_a_clustered_table_with_a_qbeast_index_allows_nothing() -> None:
    indexed = TableMetadata("u", configuration={"qbeast.lastRevisionID": "7"})
    found = refusal(indexed, with_features("clustering"))
    assert found is not None
    assert found.allows == ()


def test_safe_features_together_are_accepted() -> None:
    assert refusal(PLAIN, with_features(*SAFE_FEATURES)) is None


@pytest.mark.parametrize(("reader", "writer"), [(1, 2), (1, 6), (2, 6), (1, 7), (3, 7)])
def test_known_versions_are_accepted(reader: int, writer: int) -> None:
    assert refusal(PLAIN, TableProtocol(reader, writer)) is None


@pytest.mark.parametrize(("reader", "writer"), [(4, 7), (3, 8), (3, 6), (0, 2), (1, 0), (0, 7)])
def test_other_versions_are_refused(reader: int, writer: int) -> None:
    found = refusal(PLAIN, TableProtocol(reader, writer))
    assert found is not None
    assert found.code is RefusalCode.PROTOCOL


def test_a_qbeast_table_is_refused() -> None:
    found = refusal(TableMetadata("u", configuration={"qbeast.lastRevisionID": "7"}), TableProtocol(1, 2))
    assert found is not None
    assert found.key == "qbeast:qbeast.lastRevisionID"
    assert found.allows == (INDEX, VACUUM, CHECKPOINT)


def test_a_partitioned_qbeast_table_allows_nothing() -> None:
    column = PartitionColumn("d", "d", "date")
    found = refusal(TableMetadata("u", (column,), {"qbeast.lastRevisionID": "7"}), TableProtocol(1, 2))
    assert found is not None
    assert (found.key, found.allows) == ("qbeast:partitions", ())


def test_a_partition_with_a_file_of_a_z_cube_has_no_plan_of_any_kind() -> None:
    cube = DataFile("c", MIB, WHOLE_TABLE, tags={CUBE_TAG: "1"}, rows=10, deleted_rows=9, dv_id="v")
    files = [*(DataFile(f"f{n}", MIB, WHOLE_TABLE) for n in range(12)), cube]
    state = stats_of_files(files, POLICY.size_levels)
    assert evaluate_layout(state - stats_of_file(cube, POLICY.size_levels), POLICY).needs_rewrite

    for found in (evaluate_layout(state, POLICY, 1), evaluate_idle(state, POLICY), evaluate_full(state)):
        assert (found.reason, found.needs_rewrite) == (Reason.CLUSTERED, False)
    for make in (plan, plan_idle_compaction, plan_full):
        assert make(WHOLE_TABLE, files, POLICY).groups == ()


def test_a_state_with_z_cubes_is_read_as_it_was_written_and_never_counts_more_than_there_are_files() -> None:
    cube = stats_of_file(DataFile("c", MIB, WHOLE_TABLE, tags={CUBE_TAG: "1"}), POLICY.size_levels)
    assert PartitionStats.decode(cube.encode()) == cube
    assert PartitionStats.decode(EMPTY_STATS.encode()) == EMPTY_STATS
    plain = stats_of_file(DataFile("p", MIB, WHOLE_TABLE), POLICY.size_levels)
    # A removal that tells no tags is taken for a plain file.
    assert (cube + cube - plain).clamped().cube_files == 1
    assert (plain + plain - cube).clamped().cube_files == 0
