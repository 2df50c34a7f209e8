"""Files on harmful paths are rewritten once, even alone, where the policy says so or a person asks."""

from dataclasses import replace

import pytest

from decider.state.fold import fold
from shared.layout.eligibility import Reason, is_purgeable
from shared.layout.planner import RewriteMode, plan, plan_full
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy, PortablePaths
from shared.table import Commit, DataFile, TableMetadata

ALWAYS = Policy(portable_paths=PortablePaths.ALWAYS)
NEVER = Policy(portable_paths=PortablePaths.NEVER)
FULL_SIZE = 128 * MIB
HARMFUL = DataFile("p=a%20b/x.parquet", FULL_SIZE, WHOLE_TABLE, rows=10)
PLAIN = replace(HARMFUL, path="aB/lw-x.parquet")


@pytest.mark.parametrize("policy", [Policy(), NEVER])
def test_files_of_full_size_are_not_rewritten_for_their_path_unless_asked(policy: Policy) -> None:
    assert not is_purgeable(HARMFUL, policy)
    assert not plan(WHOLE_TABLE, [HARMFUL] * 3, policy).groups
    assert not plan_full(WHOLE_TABLE, [HARMFUL], policy).groups


def test_with_always_each_is_rewritten_alone_and_what_follows_is_left_alone() -> None:
    made = plan(WHOLE_TABLE, [HARMFUL, PLAIN], ALWAYS)

    assert [(group.mode, group.files) for group in made.groups] == [(RewriteMode.PURGE, (HARMFUL,))]
    assert made.evaluation.reason is Reason.SINGLE_FILE_REWRITE
    assert not plan(WHOLE_TABLE, [PLAIN, PLAIN], ALWAYS).groups
    assert [group.files for group in plan_full(WHOLE_TABLE, [HARMFUL, PLAIN], ALWAYS).groups] == [(HARMFUL,)]


def test_who_asks_for_it_gets_it_unless_it_is_never_wanted() -> None:
    assert Policy().for_manual_rewrite == ALWAYS
    assert ALWAYS.for_manual_rewrite == ALWAYS
    assert NEVER.for_manual_rewrite == NEVER


def test_a_harmful_file_that_is_merged_is_not_rewritten_alone_besides() -> None:
    small = [replace(HARMFUL, path=f"p=a%20b/{n}", size_bytes=MIB) for n in range(20)]
    files = [file for group in plan(WHOLE_TABLE, small, ALWAYS).groups for file in group.files]
    assert len(files) == len(set(files)) == 20


@pytest.mark.parametrize(("policy", "kept"), [(ALWAYS, [HARMFUL]), (Policy(), [])])
def test_a_fold_keeps_them_where_they_are_decided_from(policy: Policy, kept: list[DataFile]) -> None:
    metadata = TableMetadata("u", (), {})
    folded = fold(Commit(1, 0, "WRITE", added=(HARMFUL, PLAIN)), metadata, policy)
    assert folded.purge_candidates.get(WHOLE_TABLE, []) == kept


def test_the_policy_survives_the_way_to_the_actor() -> None:
    assert Policy.decode(ALWAYS.encode()) == ALWAYS
    assert Policy().version == Policy.decode(Policy().encode()).version != ALWAYS.version
