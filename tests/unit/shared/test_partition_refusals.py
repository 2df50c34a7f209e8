"""What is remembered of a partition's refused files: bounds, what lifts it, and what it takes from the state."""

from dataclasses import replace

import pytest

from shared.errors import Difference, RefusedFiles, Unsupported
from shared.formats.iceberg.names import FORMAT as ICEBERG
from shared.formats.registry import support_of
from shared.layout.partition_stats import IDLE_COMPACTED_TAG, stats_of_files
from shared.partition_refusals import (
    FIRST_HOLD,
    LONGEST_HOLD,
    MAX_BYTES,
    MAX_REFUSALS,
    NOTHING,
    PartitionRefusals,
    TableFingerprint,
    file_id,
    live_ids,
)
from shared.policy.policy import MIB, Policy, Proofread
from shared.refusals import RefusalReason, explain
from shared.table import DataFile, PartitionKey, TableMetadata

POLICY = Policy(target_bytes=8 * MIB)
METADATA = TableMetadata("u", (), {"delta.x": "1"}, schema_digest="s")
HERE = TableFingerprint.of(METADATA, POLICY)
KEY = PartitionKey("{}")
MS_OF_MINUTE = 60_000
ERROR = RefusedFiles("an unsigned column", reason=RefusalReason.TYPES)


def files(*names: str, **more: object) -> tuple[DataFile, ...]:
    return tuple(DataFile(name, 100_000, KEY, **more) for name in names)  # type: ignore[arg-type]


def remembered(*names: str, policy: Policy = POLICY) -> PartitionRefusals:
    return NOTHING.in_force(HERE).added(ERROR, files(*names), policy, now_ms=1)


def test_what_is_remembered_survives_its_text() -> None:
    odd = (
        DataFile("dv", 9, KEY, "v1", rows=10, deleted_rows=5),
        DataFile("tag", 9 * MIB, KEY, tags={IDLE_COMPACTED_TAG: "1", "other": "x"}, key_range=(1, 9)),
    )
    policy = replace(POLICY, time_window_s=3600)
    known = remembered("a").added(Difference("rows differ"), odd, policy, now_ms=2)
    again = PartitionRefusals.decode(known.encode())
    assert again == known
    assert again.encode() == known.encode()
    assert [one.reason for one in again.refusals] == ["types", "difference"]
    assert again.stats(POLICY) == stats_of_files((*files("a"), *odd), POLICY.size_levels)
    assert again.purgeable == 1


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"fingerprint":[1,2,3,4,5]}', "null"])
def test_a_text_that_cannot_be_read_is_no_memory(text: str) -> None:
    assert PartitionRefusals.decode(text) == NOTHING


@pytest.mark.parametrize(
    ("metadata", "policy", "release"),
    [
        (replace(METADATA, schema_digest="other"), POLICY, None),
        (replace(METADATA, table_uuid="other"), POLICY, None),
        (replace(METADATA, configuration={"delta.x": "2"}), POLICY, None),
        (METADATA, replace(POLICY, proofread=Proofread.NEVER), None),
        (METADATA, POLICY, "9.0.0"),
    ],
)
def test_another_schema_table_property_or_newer_release_lifts_all(
    metadata: TableMetadata, policy: Policy, release: str | None
) -> None:
    known = replace(remembered("a"), futile_runs=3, held_until=9)
    assert not known.in_force(TableFingerprint.of(metadata, policy, release)).encode()


@pytest.mark.parametrize(
    ("metadata", "release"),
    [
        (replace(METADATA, configuration={"delta.x": "1", "numFiles": "7", "qbeast.revision.1": "x"}), None),
        (replace(METADATA, schema_digest=""), None),
        (METADATA, "0.0.1"),
    ],
)
def test_what_writers_set_an_unknown_schema_and_an_older_release_lift_nothing(
    metadata: TableMetadata, release: str | None
) -> None:
    known = remembered("a")
    assert known.in_force(TableFingerprint.of(metadata, POLICY, release)) == known


def test_the_removal_of_one_file_lifts_its_refusal_and_no_other() -> None:
    known = remembered("a", "b").added(ERROR, files("c"), POLICY, now_ms=2)
    assert [one.count for one in known.after_removal({file_id("b")}).refusals] == [1]
    assert known.after_removal({file_id("d")}) == known
    assert known.after_removal(()) == known


def test_a_file_that_is_gone_or_has_other_deletes_lifts_its_refusal() -> None:
    known = remembered("a", "b")
    assert known.among(live_ids(files("a", "b", "c"))) == known
    assert not known.among(live_ids(files("a"))).refusals
    assert not known.among(live_ids((*files("a"), *files("b", dv_id="v2")))).refusals


def test_a_path_is_the_same_file_however_it_is_spelled() -> None:
    assert remembered("file:///x/a%2fb").without(files("/x/a%2Fb", "c")) == files("c")


def test_a_file_is_remembered_once() -> None:
    known = remembered("a", "b")
    assert known.added(ERROR, files("a"), POLICY, now_ms=5) == known
    assert len(known.added(ERROR, files("a", "c"), POLICY, now_ms=5).refusals[1].files) == 1


@pytest.mark.parametrize("groups", [[2_000], [40] * 100, [1] * (MAX_REFUSALS + 1)])
def test_the_text_is_bounded_and_more_is_the_partition_as_a_whole(groups: list[int]) -> None:
    known = NOTHING.in_force(HERE)
    for number, size in enumerate(groups):
        some = files(*(f"{number}-{at}-{'x' * 900}" for at in range(size)))
        known = known.added(RefusedFiles("m" * 900, reason=RefusalReason.TYPES), some, POLICY, now_ms=1)
        assert len(known.encode().encode()) <= MAX_BYTES
        assert len(known.refusals) <= MAX_REFUSALS
    assert known.refusals[-1].is_whole or known.refusals[0].is_whole


def test_only_runs_that_found_nothing_else_make_the_next_attempt_wait_and_each_twice_as_long() -> None:
    known, holds = remembered("a"), []
    for _ in range(16):
        known = known.after_run(100, has_committed=False, has_refused=True)
        holds.append(max(0, known.held_until - 100))
    assert holds[:5] == [0, FIRST_HOLD, 2 * FIRST_HOLD, 4 * FIRST_HOLD, 8 * FIRST_HOLD]
    assert holds[-1] == LONGEST_HOLD
    assert known.after_run(100, has_committed=False, has_refused=False) == known
    committed = known.after_run(100, has_committed=True, has_refused=True)
    assert (committed.futile_runs, committed.held_until, committed.refusals) == (0, 0, known.refusals)


def test_a_hold_is_as_long_where_versions_are_times() -> None:
    """A table of Iceberg with a commit a minute waits for as many commits."""
    step = support_of(ICEBERG).commit_step
    assert step == MS_OF_MINUTE
    known = remembered("a")
    for hold in (0, FIRST_HOLD, 2 * FIRST_HOLD):
        known = known.after_run(100, has_committed=False, has_refused=True, commit_step=step)
        assert known.held_until == (100 + hold * step if hold else 0)
    for hold in (FIRST_HOLD, 2 * FIRST_HOLD):
        known = known.after_job("cluster", ERROR, 100, now_ms=1, commit_step=step)
        assert known.jobs[0].held_until == 100 + hold * step


def test_a_hold_keeps_commits_from_jobs_and_only_a_whole_refusal_keeps_timers_and_people() -> None:
    known = remembered("a").after_run(10, has_committed=False, has_refused=True)
    known = known.after_run(10, has_committed=False, has_refused=True)
    assert known.blocks(10 + FIRST_HOLD - 1, is_automatic=True)
    assert not known.blocks(10, is_automatic=False)
    assert not known.blocks(10 + FIRST_HOLD, is_automatic=True)
    whole = NOTHING.in_force(HERE).added(Unsupported("no"), (), POLICY, now_ms=1)
    whole = whole.after_run(10, has_committed=False, has_refused=True)
    assert whole.blocks(10, is_automatic=False)
    assert whole.after_hold(10) == whole
    lucky = whole.after_run(10, has_committed=True, has_refused=True)
    assert (lucky.futile_runs, lucky.held_until) == (0, 10 + FIRST_HOLD)
    over = whole.after_hold(10 + FIRST_HOLD)
    assert (over.refusals, over.held_until, over.futile_runs) == ((), 0, 1)


@pytest.mark.parametrize("reason", RefusalReason)
def test_each_reason_has_a_sentence_and_a_remedy(reason: RefusalReason) -> None:
    message, remedy = explain(reason)
    assert message.endswith(".")
    assert not remedy.endswith(".")


def test_a_reason_of_a_newer_release_is_shown_by_its_word() -> None:
    assert "some_day" in explain("some_day")[0]


def test_all_refusals_are_those_of_files_and_then_those_of_jobs() -> None:
    known = remembered("a").after_job("cluster", ERROR, 3, now_ms=1)
    assert known.all == (*known.refusals, *known.jobs)
    assert [one.message for one in known.all] == [str(ERROR)] * 2
