"""Which snapshots, branches and tags expire: by their own limits, those of the table, and when they were the newest."""

from dataclasses import replace

import pytest

from shared.errors import InvalidInput, Unsupported
from shared.formats.iceberg.metadata import MetadataRecords, Ref, SnapshotRecord, TableHead
from shared.formats.iceberg.retention import (
    DEFAULT_MAX_SNAPSHOT_AGE_MS,
    check_may_expire,
    own_retention_s,
    plan_expiry,
)
from shared.table import TableMetadata, TableProtocol

NOW, CUTOFF = 1_000, 900


def snapshot(number: int, at_ms: int, parent: int | None = None) -> SnapshotRecord:
    return SnapshotRecord(number, parent, number, at_ms, f"list-{number}", "append")


def chain(*times: int) -> dict[int, SnapshotRecord]:
    """Return snapshots 1, 2, ... of one branch, made at these times."""
    return {one: snapshot(one, at_ms, one - 1 or None) for one, at_ms in enumerate(times, start=1)}


def table(
    snapshots: dict[int, SnapshotRecord], refs: dict[str, Ref], updated_ms: int = NOW, **properties: str
) -> TableHead:
    spelled = {f"history.expire.{name.replace('_', '-')}": value for name, value in properties.items()}
    metadata = TableMetadata("u", (), spelled)
    main = refs.get("main")
    current = None if main is None else main.snapshot
    return TableHead("s3://t", metadata, TableProtocol(2, 2), updated_ms, current, {}, snapshots, refs=refs)


def branch(number: int, **limits: int) -> Ref:
    return Ref(number, is_branch=True, **limits)


def tag(number: int, **limits: int) -> Ref:
    return Ref(number, is_branch=False, **limits)


def expired(*versions: TableHead) -> set[int]:
    return set(plan_expiry(versions, CUTOFF, NOW).snapshots)


def test_a_snapshot_that_was_the_newest_inside_the_retention_stays_however_old_it_is() -> None:
    assert expired(table(chain(100, 200, 300, 950), {"main": branch(4)})) == {1, 2}
    assert expired(table(chain(100, 200, 300, 899), {"main": branch(4)})) == {1, 2, 3}


def test_of_a_table_at_rest_the_newest_snapshots_stay_in_the_number_that_is_set() -> None:
    snapshots = chain(1, 2, 3, 4)
    assert expired(table(snapshots, {"main": branch(4)})) == {1, 2, 3}
    assert expired(table(snapshots, {"main": branch(4)}, min_snapshots_to_keep="3")) == {1}
    assert expired(table(snapshots, {"main": branch(4, min_snapshots=2)}, min_snapshots_to_keep="3")) == {1, 2}


def test_a_branch_keeps_longer_by_its_own_age_and_never_shorter_than_the_retention() -> None:
    snapshots = chain(100, 200, 300, 950)
    assert expired(table(snapshots, {"main": branch(4, max_snapshot_age_ms=750)})) == {1}
    assert expired(table(snapshots, {"main": branch(4, max_snapshot_age_ms=10)})) == {1, 2}
    # The clock of the writer of 3 and 4 was behind, so that only the branch keeps 3.
    assert expired(table(chain(100, 950, 800, 820), {"main": branch(4, max_snapshot_age_ms=10)})) == set()


def test_a_tag_keeps_its_snapshot_and_none_between() -> None:
    assert expired(table(chain(1, 2, 3, 4, 5), {"main": branch(5), "t": tag(2)})) == {1, 3, 4}


def test_a_branch_of_which_others_expired_the_middle_ends_there() -> None:
    snapshots = {1: snapshot(1, 1), 3: snapshot(3, 3, 2)}
    assert expired(table(snapshots, {"main": branch(3)}, min_snapshots_to_keep="9")) == {1}


def test_branches_and_tags_expire_by_age_with_the_retention_and_main_never_does() -> None:
    refs = {"main": branch(1), "old": tag(2, max_ref_age_ms=1), "young": tag(3, max_ref_age_ms=1), "kept": branch(4)}
    snapshots = {1: snapshot(1, 1), 2: snapshot(2, 2), 3: snapshot(3, 950), 4: snapshot(4, 4)}
    assert plan_expiry([table(snapshots, refs)], CUTOFF, NOW).refs == ("old",)
    everything = plan_expiry([table(snapshots, refs, max_ref_age_ms="1")], CUTOFF, NOW)
    assert everything.refs == ("kept", "old")
    assert plan_expiry([table(snapshots, refs, max_ref_age_ms="996")], CUTOFF, NOW).refs == ("old",)
    lost = table(snapshots, refs | {"lost": tag(9, max_ref_age_ms=1)})
    assert "lost" not in plan_expiry([lost], CUTOFF, NOW).refs, "a snapshot that is missing has no age"


def test_a_snapshot_stays_while_a_branch_or_tag_named_it_inside_the_retention() -> None:
    snapshots = chain(1, 2, 3)
    tagged = table(snapshots, {"main": branch(3), "t": tag(1)}, updated_ms=10)
    dropped = table(snapshots, {"main": branch(3)}, updated_ms=950)
    assert expired(tagged, dropped) == {2}
    assert expired(tagged, replace(dropped, updated_ms=CUTOFF - 1)) == {1, 2}
    expires = plan_expiry([table(snapshots, {"main": branch(3), "t": tag(1, max_ref_age_ms=1)})], CUTOFF, NOW)
    assert (expires.refs, expires.snapshots) == (("t",), {2})


def test_a_snapshot_that_was_rolled_back_inside_the_retention_stays() -> None:
    head = replace(
        table(chain(1, 2, 3), {"main": branch(2)}), records=MetadataRecords(((1, 1), (2, 2), (3, 3), (950, 2)))
    )
    assert expired(head) == {1}
    assert expired(replace(head, records=MetadataRecords(((1, 1), (2, 2), (3, 3), (850, 2))))) == {1, 3}


def test_staged_snapshots_expire_by_age() -> None:
    snapshots = {1: snapshot(1, 1), 2: snapshot(2, 2, 1), 3: snapshot(3, 899, 1), 4: snapshot(4, 900, 1)}
    assert expired(table(snapshots, {"main": branch(2)})) == {3}


def test_snapshots_of_earlier_metadata_are_gone_unless_they_are_inside_the_retention() -> None:
    before = table(chain(1, 2, 3, 950, 960), {"main": branch(5)}, updated_ms=960)
    after = table({5: snapshot(5, 960, 4)}, {"main": branch(5)}, updated_ms=970)
    found = plan_expiry([before, after], CUTOFF, NOW)
    assert (found.snapshots, found.gone) == (frozenset(), {1, 2})


def test_a_table_without_snapshots_has_nothing_to_expire() -> None:
    found = plan_expiry([table({}, {})], CUTOFF, NOW)
    assert (found.snapshots, found.gone, found.refs) == (frozenset(), frozenset(), ())


def test_the_retention_of_a_table_is_the_longest_that_its_properties_set() -> None:
    assert own_retention_s({}) == DEFAULT_MAX_SNAPSHOT_AGE_MS // 1_000
    assert own_retention_s({"history.expire.max-snapshot-age-ms": "1500"}) == 2
    assert own_retention_s({"lakewright.retain": "30 days"}) == 30 * 86_400


@pytest.mark.parametrize("name", ["max-snapshot-age-ms", "min-snapshots-to-keep", "max-ref-age-ms"])
@pytest.mark.parametrize("value", ["", "five", "-1", "1.5", "٣", "9" * 5_000])
def test_limits_that_cannot_be_read_delete_nothing(name: str, value: str) -> None:
    properties = {f"history.expire.{name}": value}
    with pytest.raises(InvalidInput, match="nothing is deleted"):
        check_may_expire(properties, "s3://t")


@pytest.mark.parametrize("name", ["min-snapshots-to-keep", "max-ref-age-ms"])
def test_a_limit_of_nothing_deletes_nothing(name: str) -> None:
    with pytest.raises(InvalidInput, match="nothing is deleted"):
        check_may_expire({f"history.expire.{name}": "0"}, "s3://t")


def test_a_table_whose_files_may_belong_to_others_is_refused() -> None:
    check_may_expire({}, "s3://t")
    check_may_expire({"gc.enabled": "TRUE"}, "s3://t")
    for value in ("false", "no", "", " true"):
        with pytest.raises(Unsupported, match="may belong to other tables"):
            check_may_expire({"gc.enabled": value}, "s3://t")


@pytest.mark.parametrize("name", ["nessie.commit.id", "nessie.catalog.content-id"])
def test_a_table_of_a_catalog_with_branches_of_its_own_is_refused_whatever_its_properties_allow(name: str) -> None:
    with pytest.raises(Unsupported, match=r"branches and tags of Nessie.*nessie-gc"):
        check_may_expire({"gc.enabled": "true", name: "1"}, "s3://t")


def test_what_a_table_held_before_it_was_replaced_stays_for_the_retention() -> None:
    """CREATE OR REPLACE begins another main and clears its log; a busy table no longer names the metadata before it."""
    before = chain(100, 200)
    late = {**before, 3: snapshot(3, 950), 4: snapshot(4, 960, 3)}
    assert expired(table(late, {"main": branch(4)})) == {1}
    early = {**before, 3: snapshot(3, 850), 4: snapshot(4, 860, 3)}
    assert expired(table(early, {"main": branch(4)})) == {1, 2, 3}


def test_what_was_rolled_back_stays_for_the_retention_though_no_log_shows_it() -> None:
    rolled_back = {**chain(100, 200, 300), 4: snapshot(4, 950, 1), 5: snapshot(5, 960, 4)}
    assert expired(table(rolled_back, {"main": branch(5)})) == {2}
    lost = {1: snapshot(1, 100), 3: snapshot(3, 300, 2), 4: snapshot(4, 950, 1)}
    assert expired(table(lost, {"main": branch(4)})) == {3}
    at_rest = {1: snapshot(1, 100), 2: snapshot(2, 200, 1)}
    assert expired(table(at_rest, {"main": branch(1)})) == {2}
    assert expired(table(at_rest, {})) == {1, 2}
