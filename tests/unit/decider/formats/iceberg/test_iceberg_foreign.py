"""A table whose metadata another system generates is refused when it is read, and again once its mark comes later."""

import asyncio
from pathlib import Path

from decider.formats.iceberg.table import IcebergFormat, IcebergSettings, IcebergTable
from shared.refusals import Refusal
from shared.table import Commit
from tests.contract.formats.worlds import access
from tests.support.iceberg_folder import IcebergFolder

NUMBERED, DRAWN = "0000-000000", "0000-00abcd"
"""Ids of tables whose snapshots are numbered one by one, as Paimon's, or have ids that are drawn at random."""


def opened(made: IcebergFolder) -> IcebergTable:
    return IcebergFormat(access(), IcebergSettings(reads_folders=True)).open(made.location)


def refusal(made: IcebergFolder) -> Refusal | None:
    return asyncio.run(opened(made).snapshot()).refusal


def test_a_table_of_an_older_paimon_is_known_by_its_folder(tmp_path: Path) -> None:
    made = IcebergFolder(tmp_path / "t")
    made.create(NUMBERED)
    made.commit([made.file(10)])
    assert refusal(made) is None
    (made.path / "schema").mkdir()
    (made.path / "schema" / "schema-0").write_text("{}")
    found = refusal(made)
    assert found is not None
    assert (found.subject, "Apache Paimon" in found.reason) == ("generated-metadata", True)


def test_a_folder_that_looks_like_paimons_is_not_asked_for_where_snapshots_have_other_ids(tmp_path: Path) -> None:
    made = IcebergFolder(tmp_path / "t")
    made.create(DRAWN)
    made.commit([made.file(10)])
    (made.path / "schema").mkdir()
    (made.path / "schema" / "schema-0").write_text("{}")
    assert refusal(made) is None


def test_a_mark_that_comes_with_a_later_snapshot_comes_with_its_commit(tmp_path: Path) -> None:
    made = IcebergFolder(tmp_path / "t")
    made.create(DRAWN)
    made.commit([made.file(10)])

    async def later() -> list[Commit]:
        table = opened(made)
        before = await table.snapshot()
        made.commit([made.file(10)])
        made.commit([made.file(10)], summary={"paimon-commit-identity": "a"})
        return [one async for one in table.changes(before.position, before.metadata)]

    first, newest = asyncio.run(later())
    assert first.protocol is None
    assert newest.protocol is not None
    assert newest.protocol.writer_features == {"paimon-commit-identity"}
    assert newest.metadata is None, "properties and partitions are those from before"
