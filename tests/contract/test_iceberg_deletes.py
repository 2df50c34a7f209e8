"""Rewrites of files with position and equality deletes, committed by Iceberg's own classes in a JVM without Spark."""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from actor.formats.iceberg.inputs import AppliedDelete, Listed
from actor.formats.iceberg.java_table import JavaTable
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from shared.errors import Conflict
from shared.jobs.payload import RewriteKind
from shared.layout.planner import FileGroup, RewriteMode, plan_rewrite
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import DataFile, DeleteKind, PartitionKey
from tests.contract.formats.worlds import access
from tests.support.iceberg_jvm import IcebergJvm

POLICY = Policy(target_bytes=600)
"""Every file is full, so that nothing but its deletes is a reason to rewrite it."""

G0 = PartitionKey('{"g":"0"}')


def seen_by_decider(table: Any) -> dict[str, DataFile]:
    location = str(table.location()).replace("file:/", "file:///", 1) if "///" not in table.location() else None
    reader = IcebergFormat(access(), IcebergSettings(reads_folders=True)).open(location or str(table.location()))
    return {one.path: one for one in asyncio.run(reader.snapshot()).files}


def seen_by_actor(ice: IcebergJvm, table: Any) -> dict[str, DataFile]:
    return {path: one.file for path, one in ice.inputs(table).items()}


def deletes_of(files: dict[str, DataFile]) -> dict[str, tuple[str | None, int]]:
    return {path: (one.dv_id, one.deleted_rows) for path, one in files.items()}


@pytest.mark.parametrize("by_g", [False, True])
def test_decider_and_actor_attach_the_same_deletes_after_any_commits(ice: IcebergJvm, by_g: bool) -> None:
    random = Random(3)
    table = ice.create(f"same-{by_g}", by_g=by_g)
    paths = ice.append(table, 0, 10, 20)
    for round_ in range(6):
        some = random.sample(paths, k=min(len(paths), random.randint(1, 2)))
        ice.delete_places(table, [(path, random.randrange(10)) for path in some])
        if round_ % 2 and not by_g:
            ice.delete_values(table, [random.randrange(30)])
        assert deletes_of(seen_by_decider(table)) == deletes_of(seen_by_actor(ice, table))
        ice.rewrite(table, G0 if by_g else WHOLE_TABLE, [random.choice(sorted(ice.inputs(table)))])
        paths = [*sorted(ice.inputs(table)), *ice.append(table, 100 + 10 * round_)]
        assert deletes_of(seen_by_decider(table)) == deletes_of(seen_by_actor(ice, table))


@pytest.mark.parametrize("by_g", [False, True])
def test_a_full_rewrite_of_every_file_with_deletes_is_the_last_one(ice: IcebergJvm, by_g: bool) -> None:
    """The files of positions apply to several files, each of which is rewritten by a commit of its own."""
    partition = G0 if by_g else WHOLE_TABLE
    table = ice.create(f"last-{by_g}", by_g=by_g)
    first, second, third, whole = ice.append(table, 0, 10, 20, 30)
    ice.delete_places(table, [(first, 0), (second, 1)])
    ice.delete_places(table, [(third, 1), (second, 2), (first, 9)])
    rows = ice.rows(table)
    rewritten: list[str] = []
    for _ in range(5):
        planned = plan_rewrite(RewriteKind.FULL, partition, list(seen_by_decider(table).values()), POLICY)
        alike = plan_rewrite(RewriteKind.FULL, partition, list(seen_by_actor(ice, table).values()), POLICY)
        wanted = [[file.path for file in group.files] for group in planned.groups]
        assert sorted(wanted) == sorted([file.path for file in group.files] for group in alike.groups)
        for group in wanted:
            assert ice.rewrite(table, partition, group).version is not None
            rewritten += group
        assert ice.rows(table) == rows
        if not wanted:
            break
    # Iceberg applies files of positions to the fourth one as well, for it is of the same partition.
    assert sorted(rewritten) == sorted([first, second, third, whole])
    assert ice.delete_files(table) == 0


def test_half_of_a_files_rows_deleted_is_a_purge_for_both(ice: IcebergJvm) -> None:
    table = ice.create("half")
    first, _ = ice.append(table, 0, 10)
    ice.delete_places(table, [(first, place) for place in range(5)])
    for files in (seen_by_decider(table), seen_by_actor(ice, table)):
        (group,) = plan_rewrite(RewriteKind.LEVELS, WHOLE_TABLE, list(files.values()), POLICY).groups
        assert (group.mode, [file.path for file in group.files]) == (RewriteMode.PURGE, [first])
    ice.rewrite(table, WHOLE_TABLE, [first])
    assert not plan_rewrite(RewriteKind.LEVELS, WHOLE_TABLE, list(seen_by_decider(table).values()), POLICY).groups


pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]


@pytest.fixture(scope="module")
def ice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergJvm]:
    running = IcebergJvm(tmp_path_factory.mktemp("iceberg"))
    yield running
    running.close()


@pytest.mark.parametrize("by_g", [False, True])
def test_a_file_of_positions_goes_with_the_last_file_that_it_applies_to(ice: IcebergJvm, by_g: bool) -> None:
    partition = PartitionKey('{"g":"0"}') if by_g else WHOLE_TABLE
    table = ice.create(f"positions-{by_g}", by_g=by_g)
    first, second, _ = ice.append(table, 0, 10, 20)
    ice.delete_places(table, [(first, 0), (second, 1)])
    rows = [number for number in range(30) if number not in (0, 11)]
    ice.rewrite(table, partition, [first])
    assert (ice.rows(table), ice.delete_files(table)) == (rows, 1)
    ice.rewrite(table, partition, list(ice.inputs(table)))
    assert (ice.rows(table), ice.delete_files(table)) == (rows, 0)


def test_values_that_are_deleted_between_write_and_commit_stay_deleted(ice: IcebergJvm) -> None:
    table = ice.create("values")
    first, second = ice.append(table, 0, 10)
    ice.delete_values(table, [3, 13])
    ice.rewrite(table, WHOLE_TABLE, [first])
    assert ice.delete_files(table) == 1
    everything = list(ice.inputs(table))
    ice.rewrite(table, WHOLE_TABLE, everything, before=lambda: ice.delete_values(table, [5, 15]))
    assert ice.rows(table) == [number for number in range(20) if number not in (3, 5, 13, 15)]
    assert ice.delete_files(table) == 1  # The newer one alone, for it applies to the output.
    assert second not in ice.inputs(table)


def test_values_deleted_in_the_whole_table_are_judged_by_all_its_specs(ice: IcebergJvm) -> None:
    table = ice.create("evolved")
    (first,) = ice.append(table, 0)
    table.updateSpec().addField("g").commit()
    (second,) = ice.append(table, 10)
    ice.delete_values(table, [3, 13], spec=0)
    rows = [number for number in range(20) if number not in (3, 13)]
    ice.rewrite(table, WHOLE_TABLE, [first])
    assert (ice.rows(table), ice.delete_files(table)) == (rows, 1)
    ice.rewrite(table, PartitionKey('{"#spec":"1","g":"0"}'), [second])
    assert ice.rows(table) == rows


@pytest.mark.parametrize("by_g", [False, True])
def test_rows_deleted_by_place_before_the_commit_are_hidden_in_the_output(ice: IcebergJvm, by_g: bool) -> None:
    """What the delete file names in others is written again under its own number; later rewrites revive no row."""
    partition = PartitionKey('{"g":"0"}') if by_g else WHOLE_TABLE
    table = ice.create(f"late-{by_g}", by_g=by_g)
    first, second, third = ice.append(table, 0, 10, 20)
    places = [(first, 4), (second, 0), (third, 9)]
    late = ice.rewrite(table, partition, [first, second], before=lambda: ice.delete_places(table, places))
    rows = [number for number in range(30) if number not in (4, 10, 29)]
    assert (late.version is None, late.conflicts) == (False, 0)
    assert (ice.rows(table), ice.delete_files(table)) == (rows, 2)
    assert ice.numbers_of_deletes(table) == [2, 3], "the winner's, and that of the rewrite"
    (output,) = (path for path in ice.inputs(table) if path != third)
    assert deletes_of_both(ice, table)[output] == 2
    ice.append(table, 30)
    ice.rewrite(table, partition, [third])
    assert ice.rows(table) == [*rows, *range(30, 40)]
    ice.rewrite(table, partition, list(ice.inputs(table)))
    assert (ice.rows(table), ice.delete_files(table)) == ([*rows, *range(30, 40)], 0)


def deletes_of_both(ice: IcebergJvm, table: Any) -> dict[str, int]:
    """Return how many rows decider and actor see deleted in each file."""
    seen = {path: one.deleted_rows for path, one in seen_by_decider(table).items()}
    assert seen == {path: one.deleted_rows for path, one in seen_by_actor(ice, table).items()}
    return seen


def test_a_delete_file_is_read_only_where_the_bounds_of_its_paths_can_hold_the_file(ice: IcebergJvm) -> None:
    """They may be cut: the lower one short, the upper one short and greater."""
    table = ice.create("bounds")
    path, *_ = ice.append(table, 0)
    loaded = JavaTable(ice.classes, table, "file:///t")  # type: ignore[arg-type]
    for low, high, is_read in (
        (path[:-9], path[:-9] + "~", True),
        (path, path, True),
        (None, None, True),
        ("file:/", path[:-9], False),
        (path + "0", path + "1", False),
    ):
        raw = ice.of_places(table, [(path, 4)], bounds=(low, high))
        listed = Listed(ice.classes.java_list([raw]), 0)
        deletes = [AppliedDelete(str(raw.location()), DeleteKind.POSITION, 1, is_exact=False, listed=listed)]
        assert loaded.named(path, deletes) == ([4] if is_read else []), (low, high)


def test_a_stream_of_upserts_never_costs_a_rewrite(ice: IcebergJvm) -> None:
    """Each of its commits deletes by value what it replaces, and by position what it wrote twice itself."""
    table = ice.create("stream")
    model: set[int] = set()
    number = 0

    def upsert() -> None:
        nonlocal number
        number += 1
        keys = [(7 * number + one) % 40 for one in range(6)]
        ice.upsert(table, keys)
        model.update(keys)

    for _ in range(4):
        upsert()
    for round_ in range(6):
        chosen = sorted(ice.inputs(table))[: 2 + round_ % 3]
        done = ice.rewrite(table, WHOLE_TABLE, chosen, before=lambda: [upsert() for _ in range(3)])
        assert (done.version is None, done.conflicts) == (False, 0)
        assert ice.rows(table) == sorted(model)


@pytest.mark.parametrize("by_g", [False, True])
def test_what_snapshots_changed_since_a_read_is_what_a_scan_finds(ice: IcebergJvm, by_g: bool) -> None:
    """Files of positions that name one data file or several, in two partitions, and removals of both."""
    random, table = Random(7), ice.create(f"followed-{by_g}", by_g=by_g)
    ice.append(table, 0, 10, 20, 30)
    ice.append_files(table, range(40, 50), to="g=0")
    loaded = JavaTable(ice.classes, table, "file:///t")  # type: ignore[arg-type]

    def drop() -> None:
        ice.drop(table, random.choice(sorted(ice.inputs(table))))

    def delete_places(most: int) -> None:
        where = sorted(ice.places(table).values())
        ice.delete_places(table, random.sample(where, k=min(len(where), random.randint(1, most))))

    acts = [lambda: ice.append(table, 100), lambda: delete_places(1), lambda: delete_places(6), drop]
    acts += [lambda: ice.rewrite_as_others(table, random.choice(sorted(ice.inputs(table))))]
    acts += [lambda: ice.delete_values(table, [random.randrange(50)])]
    for number in range(12):
        head, read = loaded.refresh(), ice.inputs(table)
        partition = next(iter(read.values())).file.partition
        group = FileGroup(partition, tuple(one.file for one in read.values()), RewriteMode.FULL)
        assert head.current is not None
        inputs = loaded.live(head.current, [group])
        for _ in range(number % 4):
            random.choice(acts)()
        now = loaded.refresh().current
        assert now is not None
        followed = loaded.followed(inputs, head.current, now)
        assert followed is not None
        scanned = loaded.live(now, [group])
        assert {path: one.positional for path, one in followed.items()} == {
            path: one.positional for path, one in scanned.items()
        }
        assert loaded.followed(inputs, now, head.current) == (inputs if now == head.current else None)


@pytest.mark.parametrize("by_value", [False, True])
@pytest.mark.parametrize("at_commit", [False, True])
def test_rows_that_come_back_before_the_commit_are_not_lost(ice: IcebergJvm, by_value: bool, at_commit: bool) -> None:
    """Iceberg itself does not ask whether deletes that were read are still there."""
    table = ice.create(f"back-{by_value}-{at_commit}")
    first, second = ice.append(table, 0, 10)
    if by_value:
        ice.delete_values(table, [4, 11])
    else:
        ice.delete_places(table, [(first, 4), (second, 1)])
    moments = [lambda: None, lambda: ice.bring_back(table, first)]
    done = ice.rewrite(table, WHOLE_TABLE, [first], *(moments if at_commit else moments[1:]))
    assert ({*done.set_aside.values()}, done.version, done.conflicts) == ({"rows_returned"}, None, 1)
    assert ice.rows(table) == list(range(20))


def test_a_rollback_before_the_commit_takes_the_group(ice: IcebergJvm) -> None:
    table = ice.create("taken")
    first, _ = ice.append(table, 0, 10)
    ice.delete_places(table, [(first, 4)])
    before = table.currentSnapshot().parentId()
    back = ice.rewrite(table, WHOLE_TABLE, [first], before=lambda: table.manageSnapshots().rollbackTo(before).commit())
    assert (back.version, back.conflicts) == (None, 1)
    assert ice.rows(table) == list(range(20))


def test_deletes_by_value_that_iceberg_would_drop_refuse_the_commit(ice: IcebergJvm) -> None:
    """It drops those that are older than every data file which was there, and counts no output of the commit."""
    table = ice.create("dropped")
    (first,) = ice.append(table, 0)

    def others() -> None:
        ice.delete_values(table, [3])
        ice.append(table, 10)

    with pytest.raises(Conflict, match="later deletes would be dropped"):
        ice.rewrite(table, WHOLE_TABLE, [first], before=others)
    rows = [number for number in range(20) if number != 3]
    assert (ice.rows(table), ice.metadata_files_left(table)) == (rows, set())
    assert ice.rewrite(table, WHOLE_TABLE, [first]).version is not None
    assert ice.rows(table) == rows


def test_a_commit_that_others_are_faster_than_is_tried_again_by_us_and_not_by_iceberg(ice: IcebergJvm) -> None:
    """Iceberg would wait as the table says, 100 ms at least, in which others commit again."""
    table = ice.create("busy")
    paths = ice.append(table, 0, 10)
    done = ice.rewrite(ice.busy(table, 2), WHOLE_TABLE, paths)
    assert (done.version is None, done.conflicts) == (False, 2)
    assert (ice.rows(table), ice.metadata_files_left(table)) == (list(range(20)), set())


def test_what_was_written_under_one_format_version_is_not_committed_under_another(ice: IcebergJvm) -> None:
    """Rows get their ids with the first commit under version 3, and outputs of before would lose them."""
    table = ice.create("upgraded")
    paths = ice.append(table, 0, 10)

    def upgrade() -> None:
        other = ice.loaded(table)
        other.updateProperties().set("format-version", "3").commit()
        ice.append(other, 20)

    done = ice.rewrite(table, WHOLE_TABLE, paths, lambda: None, upgrade)
    assert (done.conflicts, ice.rows(table)) == (1, list(range(30)))


def test_a_table_of_the_first_format_version_is_rewritten(ice: IcebergJvm) -> None:
    table = ice.create("v1", version=1, by_g=True)
    paths = ice.append(table, 0, 10)
    assert ice.rewrite(table, PartitionKey('{"g":"0"}'), paths).version is not None
    assert (len(ice.inputs(table)), ice.rows(table)) == (1, list(range(20)))
