"""Decider and actor see the same deletes of the same files, and a rewrite of all of them is the last one.

The tables are written by Iceberg's own classes. The decider attaches delete files by manifests, the actor has Iceberg's
scan attach them.
"""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from shared.jobs.payload import RewriteKind
from shared.layout.planner import RewriteMode, plan_rewrite
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import DataFile, PartitionKey
from tests.contract.formats.worlds import access
from tests.support.iceberg_jvm import IcebergJvm

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

POLICY = Policy(target_bytes=600)
"""Every file is full, so that nothing but its deletes is a reason to rewrite it."""

G0 = PartitionKey('{"g":"0"}')


@pytest.fixture(scope="module")
def ice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergJvm]:
    running = IcebergJvm(tmp_path_factory.mktemp("iceberg"))
    yield running
    running.close()


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
