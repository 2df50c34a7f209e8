"""A vacuum of an Iceberg table in memory: order, batches, stops, and what happens beside it."""

from collections.abc import Callable, Iterator

import pytest

from actor.vacuum.steps import VacuumLimits
from shared.errors import Conflict, Corrupt, InvalidInput, LeaseLost, RetryableError, Unsupported
from shared.formats.iceberg.names import COMMIT_KEY, MAIN, VACUUM_KEY
from shared.formats.iceberg.orphans import MIN_ORPHAN_AGE_MS
from shared.formats.iceberg.retention import Expiry
from shared.jobs.options import VacuumOptions
from shared.layout.commit_metadata import decode
from shared.paths.stored_file import StoredFile
from shared.policy.policy import Policy
from tests.support.iceberg_store import DAY_MS, HOUR_MS, LOCATION, IcebergStore, run_in_memory
from tests.support.local_vacuum import Control

WITH_ORPHANS = VacuumOptions(with_orphans=True)
BATCHES = VacuumLimits(batch=2, files_per_s=10**9)


@pytest.fixture
def store() -> IcebergStore:
    """Three files that were rewritten twice, long ago, and one that was removed yesterday."""
    made = IcebergStore()
    made.commit(3)
    made.now_ms += DAY_MS
    made.commit(1, sorted(live(made)))
    made.now_ms += 30 * DAY_MS
    made.commit(1, sorted(live(made)))
    made.now_ms += DAY_MS
    return made


def live(store: IcebergStore) -> set[str]:
    head = store.head_of(MAIN)
    assert head is not None
    return store.made[head].live


def at(point: str, do: Callable[[], object], done: int | None = None) -> Control:
    """Return a control with which something happens at a point, once."""
    control = Control()
    reached, has_happened = control.reached, False

    def hook(name: str, count: int = 0, total: int = 0) -> None:
        nonlocal has_happened
        reached(name, count, total)
        if name == point and done in (None, count) and not has_happened:
            has_happened = True
            do()

    control.reached = hook  # type: ignore[method-assign]
    return control


def test_what_no_snapshot_inside_the_retention_needs_goes_and_the_end_is_marked(store: IcebergStore) -> None:
    first, *others = sorted(store.snapshots)
    gone = store.made[first].needs - store.needed(set(others))
    began_ms = store.now_ms
    done = run_in_memory(store)
    assert (done.is_complete, done.version < done.commits[0] < done.commits[1]) == (True, True)
    assert set(store.deleted) == gone
    assert store.snapshots == set(others)
    assert not store.missing(store.snapshots)
    assert (done.figures["snapshots_expired"], done.figures["files_deleted"]) == (1, 5)
    assert done.figures["bytes_freed"] > 0
    mark = decode(store.raw["properties"][VACUUM_KEY])
    assert mark is not None
    assert (mark.origin.job, mark.origin.token, mark.vacuumed_orphans) == ("job", 7, 0)
    assert mark.vacuumed_until_ms == began_ms - 7 * DAY_MS
    again = run_in_memory(store)
    assert (again.figures["files_planned"], len(again.commits)) == (0, 1)


def test_a_requested_run_that_finds_nothing_commits_nothing(store: IcebergStore) -> None:
    requested = VacuumOptions(requested_ms=store.now_ms + DAY_MS)
    assert len(run_in_memory(store, requested).commits) == 2
    metadata = store.refresh()
    done = run_in_memory(store, requested)
    assert (done.is_complete, done.commits, store.refresh()) == (True, (), metadata)


def test_content_goes_before_manifests_and_these_before_their_lists(store: IcebergStore) -> None:
    run_in_memory(store, limits=BATCHES)
    kinds = [path.removeprefix(f"{LOCATION}/").split("-")[0] for path in store.deleted]
    assert [kind.split("/")[0] for kind in kinds[:3]] == ["data"] * 3
    assert kinds[3:] == ["metadata/m", "metadata/snap"]


@pytest.mark.parametrize("call", range(12))
def test_a_run_that_dies_anywhere_leaves_the_rest_to_the_next(store: IcebergStore, call: int) -> None:
    wanted = store.needed(store.snapshots - {min(store.snapshots)})
    calls = 0

    def die(name: str) -> None:
        nonlocal calls
        calls += name in ("expire", "delete", "end")
        if calls > call:
            raise RuntimeError("killed")

    store.before = die
    if call < 7:
        with pytest.raises(RuntimeError, match="killed"):
            run_in_memory(store, limits=BATCHES)
    store.before = lambda _call: None
    assert run_in_memory(store, limits=BATCHES).is_complete
    assert {path for path in store.files if not path.endswith(".json")} == wanted


def test_a_run_stops_between_two_steps_and_the_next_goes_on(store: IcebergStore) -> None:
    control = Control()
    control.stop_after = 3  # The store's clock, the expiry, one batch.
    first = run_in_memory(store, control=control, limits=BATCHES)
    assert (first.is_complete, len(first.commits), first.figures["files_deleted"]) == (False, 1, 2)
    assert VACUUM_KEY not in store.raw["properties"]
    early = Control()
    early.stop_after = 0
    assert not run_in_memory(store, control=early).is_complete
    rest = run_in_memory(store)
    assert (rest.is_complete, rest.figures["files_deleted"], rest.figures["files_missing"]) == (True, 3, 2)


@pytest.mark.parametrize("change", range(1, 7))
def test_nothing_is_changed_without_the_lease(store: IcebergStore, change: int) -> None:
    control = Control()

    def lose(count: int) -> None:
        if count >= change:
            raise LeaseLost("gone")

    control.before_change = lose
    with pytest.raises(LeaseLost):
        run_in_memory(store, control=control, limits=BATCHES)
    # The store's clock, the expiry, three batches, the end.
    assert (len(store.snapshots) == 3) is (change <= 2)
    assert len(store.deleted) == min(max(0, change - 3) * 2, 5)
    assert VACUUM_KEY not in store.raw["properties"]


def test_a_snapshot_that_comes_back_while_a_vacuum_runs_keeps_its_files(store: IcebergStore) -> None:
    first = min(store.snapshots)
    record = next(one for one in store.raw["snapshots"] if one["snapshot-id"] == first)

    def restore() -> None:
        store.raw["snapshots"] = [record, *store.raw["snapshots"]]
        store.statistics(first)
        store.rollback(first)

    done = run_in_memory(store, control=at("deleting", restore))
    assert (done.figures["files_live_again"], store.deleted) == (5, [])
    assert not store.missing(store.snapshots)


def test_a_file_that_is_added_again_while_a_vacuum_runs_stays(store: IcebergStore) -> None:
    lost = max(store.made[min(store.snapshots)].live)
    done = run_in_memory(store, control=at("deleting", lambda: store.commit(0, again=[lost]), 2), limits=BATCHES)
    assert (done.figures["files_live_again"], lost in store.files) == (1, True)
    assert not store.missing(store.snapshots)


def test_other_properties_and_a_table_that_was_undone_end_the_run(store: IcebergStore) -> None:
    stopped = run_in_memory(store, control=at("deleting", lambda: store.configure(a="b"), 2), limits=BATCHES)
    assert (stopped.is_complete, len(store.deleted)) == (False, 2)
    newest = max(store.snapshots)

    def undo() -> None:
        store.rollback(newest - 1 if newest - 1 in store.snapshots else min(store.snapshots))
        store.forget({newest})

    with pytest.raises(RetryableError, match="is gone; nothing more was deleted"):
        run_in_memory(store, control=at("deleting", undo))
    assert len(store.deleted) == 2


def test_a_branch_that_is_lost_with_the_expiry_ends_the_run_before_a_deletion(store: IcebergStore) -> None:
    """A REST catalog drops a branch that was moved to a snapshot in the moment in which that expires."""
    expire = store.expire

    def lossy(expiry: Expiry) -> None:
        expire(expiry)
        store.drop(MAIN)

    store.expire = lossy  # type: ignore[method-assign]
    with pytest.raises(RetryableError, match="main is gone since the expiry"):
        run_in_memory(store)
    assert store.deleted == []


@pytest.mark.parametrize("is_seen", [True, False])
def test_properties_that_are_set_in_the_moment_of_the_expiry_end_the_run_before_a_deletion(
    store: IcebergStore,
    is_seen: bool,
) -> None:
    """A REST catalog does not refuse the expiry because of properties, other catalogs do."""
    first, expire = min(store.snapshots), store.expire

    def late(expiry: Expiry) -> None:
        store.configure(gc__enabled="false")
        if is_seen:
            store.before = lambda _call: None
            raise Conflict("others were faster", kind="busy")
        expire(expiry)

    store.expire = late  # type: ignore[method-assign]
    done = run_in_memory(store)
    assert (done.is_complete, "changed" in done.reason, store.deleted) == (False, True, [])
    assert (first in store.snapshots) is is_seen
    assert VACUUM_KEY not in store.raw["properties"]


def test_a_table_that_moves_while_it_is_listed_is_left_alone(store: IcebergStore) -> None:
    store.write("data/{}-old.parquet")
    store.now_ms += 30 * DAY_MS

    def move() -> None:
        store.raw["location"] = "s3://lake/moved"
        store.change()

    list_files = store.list_files

    def listing() -> Iterator[StoredFile]:
        yield from list(list_files())
        move()

    store.list_files = listing  # type: ignore[method-assign]
    done = run_in_memory(store, WITH_ORPHANS)
    assert (done.is_complete, len(store.snapshots), store.deleted) == (False, 3, [])


def test_an_expiry_that_others_overtake_is_planned_again(store: IcebergStore) -> None:
    first = min(store.snapshots)
    races = iter(range(3))

    def overtake(call: str) -> None:
        if call == "expire" and next(races, None) is not None:
            store.tag("saved", first)

    store.before = overtake
    assert run_in_memory(store).is_complete
    assert first in store.snapshots
    assert not store.deleted


def test_an_expiry_that_others_overtake_again_and_again_is_given_up(store: IcebergStore) -> None:
    store.before = lambda call: store.change() if call == "expire" else None
    with pytest.raises(Conflict, match=r"was refused 67 times in 121 s"):
        run_in_memory(store)
    assert (len(store.snapshots), store.deleted) == (3, [])


def test_metadata_of_a_snapshot_that_stays_have_to_be_there(store: IcebergStore) -> None:
    manifest = next(iter(store.made[max(store.snapshots)].manifests))
    for path in (manifest, store.made[max(store.snapshots)].list):
        body = store.files.pop(path)
        with pytest.raises(Corrupt, match="a snapshot that stays needs it"):
            run_in_memory(store)
        store.files[path] = body
    assert store.deleted == []
    assert run_in_memory(store).is_complete


def test_the_retention_counts_from_the_earliest_clock_and_the_longest_wins(store: IcebergStore) -> None:
    store.clock_skew_ms = -40 * DAY_MS
    assert run_in_memory(store).figures["files_planned"] == 0
    store.clock_skew_ms = 0
    store.configure(history__expire__max_snapshot_age_ms=str(60 * DAY_MS))
    assert run_in_memory(store).figures["files_planned"] == 0
    assert run_in_memory(store, VacuumOptions(force=True, retain_s=0)).figures["snapshots_expired"] == 2


def test_a_table_that_must_not_be_vacuumed_is_left_alone(store: IcebergStore) -> None:
    files = dict(store.files)
    store.configure(lakewright__vacuum="off")
    assert "switch the vacuum off" in run_in_memory(store).reason
    store.raw["properties"] = {"gc.enabled": "false"}
    with pytest.raises(Unsupported, match="may belong to other tables"):
        run_in_memory(store)
    store.raw["properties"] = {"history.expire.min-snapshots-to-keep": "many"}
    with pytest.raises(InvalidInput, match="nothing is deleted"):
        run_in_memory(store)
    assert files.items() <= store.files.items()


def test_orphans_are_old_files_in_folders_of_the_table_that_nothing_names(store: IcebergStore) -> None:
    young = store.write("data/young-{}.parquet")
    store.now_ms += MIN_ORPHAN_AGE_MS
    kept = [store.write("data/younger-{}.parquet"), store.write("elsewhere/{}.parquet")]
    store.times[kept[1]] = store.times[young] = 0
    again = store.write("metadata/{}-again.parquet")
    store.times[again] = 0
    needed = min(live(store))
    twin = f"{LOCATION}/data/twin/{needed.rpartition('/')[2]}"
    store.files[twin], store.times[twin] = b"x", 0
    done = run_in_memory(store, WITH_ORPHANS, policy=Policy(vacuum=True, min_retain_s=0))
    assert {young, again} <= set(store.deleted)
    assert store.files.keys() >= {*kept, twin}
    assert (done.figures["orphan_files_deleted"], done.figures["orphan_bytes_freed"]) == (2, 2)
    assert not store.missing(store.snapshots)


def test_an_orphan_that_is_committed_while_a_vacuum_runs_stays(store: IcebergStore) -> None:
    late = store.write("data/late-{}.parquet")
    store.now_ms += 30 * DAY_MS
    control = at("deleting", lambda: store.commit(0, again=[late]))
    done = run_in_memory(store, WITH_ORPHANS, control=control)
    assert late in store.files
    assert done.figures["orphan_files_deleted"] == 0
    assert not store.missing(store.snapshots)


def test_a_file_that_is_committed_between_listing_and_metadata_is_no_orphan(store: IcebergStore) -> None:
    late = store.write("data/late-{}.parquet")
    store.now_ms += 30 * DAY_MS
    list_files = store.list_files

    def listing() -> Iterator[StoredFile]:
        yield from list(list_files())
        store.commit(0, again=[late])

    store.list_files = listing  # type: ignore[method-assign]
    run_in_memory(store, WITH_ORPHANS)
    assert late in store.files


@pytest.mark.parametrize(
    ("uuid", "is_old", "searched"), [("a-table", True, True), ("another", True, False), ("a-table", False, False)]
)
def test_a_folder_that_may_be_another_tables_too_has_no_orphans(
    store: IcebergStore,
    uuid: str,
    is_old: bool,
    searched: bool,
) -> None:
    """A table that was renamed, and an entry of this one in another catalog, know files that this one does not."""
    other = store.other_entry(min(store.snapshots))
    store.files[other] = store.files[other].replace(b"a-table", uuid.encode())
    store.times[other] = 0 if is_old else store.now_ms
    orphan = store.write("data/{}-old.parquet")
    store.now_ms += 30 * DAY_MS
    done = run_in_memory(store, WITH_ORPHANS)
    assert (orphan in store.files, "no orphans are searched for" in done.reason) == (not searched, not searched)
    store.configure(write__metadata__path=f"{LOCATION}/other")
    assert "write.metadata.path" in run_in_memory(store, WITH_ORPHANS).reason
    assert not store.missing(store.snapshots)


@pytest.mark.parametrize(
    "marks", [("schema/schema-0", "snapshot/LATEST"), ("_delta_log/0.json",), (".hoodie/hoodie.properties",)]
)
def test_a_folder_that_is_a_table_of_another_system_too_has_no_orphans(
    store: IcebergStore, marks: tuple[str, ...]
) -> None:
    """Paimon, UniForm and XTable write metadata of Iceberg into folders whose files only their own metadata have."""
    for mark in marks:
        store.write(mark)
    unknown = store.write("data/{}-of-others.parquet")
    store.write("bucket-0/{}.parquet")
    store.now_ms += 30 * DAY_MS
    done = run_in_memory(store, WITH_ORPHANS)
    assert (unknown in store.files, "too, which may need any file" in done.reason) == (True, True)
    for mark in marks:
        del store.files[f"{LOCATION}/{mark}"]
    done = run_in_memory(store, WITH_ORPHANS)
    assert (unknown in store.files, done.reason) == (False, "")
    assert done.figures["files_not_recognized"] == 1


def test_what_another_entry_of_the_table_needs_stays_though_it_expires_here(store: IcebergStore) -> None:
    """A table that was registered in two catalogs: each of them writes, and neither knows what the other one has."""
    first = min(store.snapshots)
    statistics = store.statistics(first)
    store.now_ms += 30 * DAY_MS
    other = store.other_entry(first)
    done = run_in_memory(store)
    assert (first in store.snapshots, store.missing({first}), statistics in store.files) == (False, set(), True)
    assert other in done.reason
    assert store.deleted
    assert not store.missing(store.snapshots)
    del store.files[other]
    assert "two catalogs" not in run_in_memory(store).reason
    assert store.missing({first})


def test_a_tag_that_is_lost_with_the_expiry_keeps_its_files(store: IcebergStore) -> None:
    """A REST catalog drops a tag that was made in the moment in which its snapshot expires."""
    expire, first = store.expire, min(store.snapshots)

    def lossy(expiry: Expiry) -> None:
        store.tag("late", first)
        store.expire = expire  # type: ignore[method-assign]
        expire(expiry)

    store.expire = lossy  # type: ignore[method-assign]
    assert run_in_memory(store).is_complete
    assert store.refs == {MAIN}
    assert not store.missing({first})


def test_files_outside_of_the_table_stay(store: IcebergStore) -> None:
    outside = "s3://lake/other/data/a.parquet"
    store.files[outside], store.times[outside] = b"x", 0
    old = store.commit(0, again=[outside])
    store.now_ms += HOUR_MS
    store.commit(1, [outside])
    store.now_ms += 90 * DAY_MS
    run_in_memory(store)
    assert (old in store.snapshots, outside in store.files) == (False, True)


def hiding(store: IcebergStore) -> str:
    """Add a delete file to a store's table, and remove all that it applies to; returns its path."""
    store.commit(0, deletes=1)
    store.commit(1, sorted(live(store) - store.deletes))
    return min(live(store) & store.deletes)


def test_delete_files_without_data_files_are_removed_last_in_a_commit_of_ours(store: IcebergStore) -> None:
    delete = hiding(store)
    store.commit(0, deletes=1)
    needed = max(live(store) & store.deletes)
    done = run_in_memory(store)
    assert (done.is_complete, done.figures["delete_files_removed"], len(done.commits)) == (True, 1, 3)
    assert live(store) & store.deletes == {needed}
    assert delete in store.files, "the snapshots before still have it"
    summary = store.raw["snapshots"][-1]["summary"]
    mark = decode(summary[COMMIT_KEY])
    assert mark is not None
    assert (summary["operation"], mark.origin.job, mark.mode) == ("replace", "job", "vacuum")
    store.now_ms += 30 * DAY_MS
    again = run_in_memory(store)
    assert (again.figures["delete_files_removed"], delete in store.files) == (0, False)
    assert not store.missing(store.snapshots)


def test_delete_files_whose_data_files_come_back_before_the_commit_stay(store: IcebergStore) -> None:
    """The removal is refused where others committed since the search, which is then repeated."""
    store.commit(0, deletes=1)
    with_data, delete = store.head_of(MAIN), min(live(store) & store.deletes)
    store.commit(1, sorted(live(store) - store.deletes))
    assert with_data is not None
    store.before = lambda call: store.rollback(with_data) if call == "remove_deletes" else None
    done = run_in_memory(store)
    assert (done.is_complete, done.figures["delete_files_removed"]) == (True, 0)
    assert delete in live(store)


def test_a_removal_of_delete_files_is_repeated_beside_writers_and_left_to_the_next_run_in_the_end(
    store: IcebergStore,
) -> None:
    hiding(store)
    store.before = lambda call: store.commit() if call == "remove_deletes" else None
    first = run_in_memory(store)
    assert (first.is_complete, first.figures["delete_files_removed"]) == (True, 0)
    store.before = lambda _call: None
    assert run_in_memory(store).figures["delete_files_removed"] == 1


def test_a_removal_of_delete_files_ends_with_the_lease_and_with_other_properties(store: IcebergStore) -> None:
    delete = hiding(store)

    def lose(_count: int) -> None:
        raise LeaseLost("gone")

    control = at("removing", lambda: setattr(control, "before_change", lose))
    with pytest.raises(LeaseLost):
        run_in_memory(store, control=control)

    def change(call: str) -> None:
        if call == "remove_deletes":
            store.commit()
            store.configure(a="b")

    store.before = change
    stopped = run_in_memory(store)
    assert (stopped.is_complete, stopped.figures["delete_files_removed"]) == (False, 0)
    assert delete in live(store)
