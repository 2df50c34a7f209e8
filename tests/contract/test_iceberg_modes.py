"""Which kinds of files each of Amoro's modes takes and makes, on real position and equality deletes.

Amoro's documentation has this as a table (concepts/self-optimizing). Lakewright takes the same inputs; its outputs are
data files alone, because a rewrite leaves deleted rows out rather than write their positions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from actor.formats.iceberg.inputs import LiveInput
from shared.jobs.payload import RewriteKind
from shared.layout.planner import RewriteMode, plan_rewrite
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import KIB, Policy
from shared.table import DeleteKind
from tests.support.iceberg_jvm import IcebergJvm

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

POLICY = Policy(target_bytes=64 * KIB)
FRAGMENT_BYTES = POLICY.target_bytes // POLICY.fan_in
"""Amoro's bound between fragments and segments."""

INSERT, VALUES, PLACES = "insert", "eq-delete", "pos-delete"
KINDS = {DeleteKind.EQUALITY: VALUES, DeleteKind.POSITION: PLACES}
AMORO_INPUTS = {
    RewriteMode.MINOR: {"fragment"},
    RewriteMode.MAJOR: {"fragment", "segment"},
    RewriteMode.FULL: {"fragment", "segment"},
    RewriteMode.PURGE: {"fragment", "segment"},
}
"""The files that each mode takes, whose deletes it applies; fragments are no inputs of a major rewrite alone."""


@dataclass
class Run:
    """What one mode did: spaces and kinds of its inputs and outputs, and the delete files that are left."""

    takes: set[str]
    makes: set[str]
    spaces_made: set[str]
    left: int


@pytest.fixture(scope="module")
def ice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergJvm]:
    running = IcebergJvm(tmp_path_factory.mktemp("iceberg"))
    yield running
    running.close()


def space(file: LiveInput) -> str:
    return "fragment" if file.size_bytes < FRAGMENT_BYTES else "segment"


def kinds(files: list[LiveInput]) -> set[str]:
    return {INSERT, *(KINDS[delete.kind] for file in files for delete in file.deletes)}


def run(ice: IcebergJvm, table: object, mode: RewriteMode) -> Run:
    """Plan the mode on the live files, rewrite each of its groups, and check that no row changed."""
    live, rows = ice.inputs(table), ice.rows(table)
    kind = RewriteKind.FULL if mode is RewriteMode.FULL else RewriteKind.LEVELS
    planned = plan_rewrite(kind, WHOLE_TABLE, [one.file for one in live.values()], POLICY)
    groups = [group for group in planned.groups if group.mode is mode]
    assert groups, (mode, [(one.mode, len(one.files)) for one in planned.groups])
    taken = [live[file.path] for group in groups for file in group.files]
    assert {space(one) for one in taken} <= AMORO_INPUTS[mode]
    for group in groups:
        assert ice.rewrite(table, WHOLE_TABLE, [file.path for file in group.files]).version is not None
    assert ice.rows(table) == rows
    made = [one for path, one in ice.inputs(table).items() if path not in live]
    assert len(made) == len(groups)
    return Run(kinds(taken), kinds(made), {space(one) for one in made}, ice.delete_files(table))


def fragments(count: int, start: int = 0) -> list[range]:
    return [range(start + 10 * number, start + 10 * number + 10) for number in range(count)]


def segments(count: int) -> list[list[int]]:
    """Return ids that do not compress, for files of some 24 KiB."""
    random = Random(7)
    return [random.sample(range(10**9, 10**17), 2_800) for _ in range(count)]


def test_minor_merges_fragments_with_their_deletes_into_data_files(ice: IcebergJvm) -> None:
    table = ice.create("minor")
    (segment,) = ice.append_files(table, *segments(1))
    first, *_ = ice.append_files(table, *fragments(10))
    ice.delete_places(table, [(first, 2)])
    ice.delete_values(table, [3, 33])
    done = run(ice, table, RewriteMode.MINOR)
    assert (done.takes, done.makes) == ({INSERT, VALUES, PLACES}, {INSERT})
    assert segment in ice.inputs(table)
    assert done.left == 1, "the deletes by value still apply to the segment"


def test_major_merges_segments_with_their_deletes_into_data_files(ice: IcebergJvm) -> None:
    table = ice.create("major")
    first, *_ = ice.append_files(table, *segments(3))
    ice.delete_places(table, [(first, 2)])
    ice.delete_values(table, [segments(1)[0][0]])
    done = run(ice, table, RewriteMode.MAJOR)
    assert (done.takes, done.makes, done.spaces_made) == ({INSERT, VALUES, PLACES}, {INSERT}, {"segment"})
    assert done.left == 0


def test_full_leaves_no_delete_file_whatever_the_sizes(ice: IcebergJvm) -> None:
    table = ice.create("full")
    first, *_ = ice.append_files(table, *segments(4), *fragments(3))
    ice.delete_places(table, [(first, 2)])
    ice.delete_values(table, [3, 13])
    done = run(ice, table, RewriteMode.FULL)
    assert (done.takes, done.makes) == ({INSERT, VALUES, PLACES}, {INSERT})
    assert done.left == 0
    assert all(not one.deletes for one in ice.inputs(table).values())


def test_a_segment_is_rewritten_alone_once_enough_of_its_rows_are_deleted_by_position(ice: IcebergJvm) -> None:
    """Amoro rewrites a segment in a major rewrite if its deletes exceed `major.trigger.duplicate-ratio`."""
    table = ice.create("purge")
    first, second = ice.append_files(table, *segments(2))
    ice.delete_places(table, [(first, place) for place in range(300)])
    ice.delete_places(table, [(second, place) for place in range(200)])
    done = run(ice, table, RewriteMode.PURGE)
    assert (done.takes, done.makes, done.left) == ({INSERT, PLACES}, {INSERT}, 1)
    assert first not in ice.inputs(table)
    assert second in ice.inputs(table)
