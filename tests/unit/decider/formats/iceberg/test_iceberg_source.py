"""The metadata that a catalog answers with are decoded once, and of newer ones only the snapshots that are new."""

import asyncio
from typing import Any

import pytest

from decider.formats.iceberg import source as sources
from decider.formats.iceberg.raw_tables import RawTable
from decider.formats.iceberg.source import CatalogSource
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.formats.iceberg.head_cache import HeadCache
from shared.formats.iceberg.metadata import decode_head


def table(*snapshots: int, uuid: str = "u", file: str = "v1", at_ms: int = 1, lists: str = "m") -> RawTable:
    raw: dict[str, Any] = {
        "format-version": 2,
        "table-uuid": uuid,
        "location": "file:///t",
        "last-updated-ms": at_ms,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "snapshots": [
            {"snapshot-id": one, "timestamp-ms": one, "manifest-list": f"{uuid}-{lists}-{one}"} for one in snapshots
        ],
    }
    return RawTable(raw, file, None)  # type: ignore[arg-type]


class Catalog:
    """A catalog that answers with these tables, one after the other."""

    def __init__(self, *answers: RawTable) -> None:
        self._answers = iter(answers)

    async def load(self, _: tuple[str, ...]) -> RawTable:
        return next(self._answers)


def test_an_answer_that_is_known_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    monkeypatch.setattr(sources, "decode_head", lambda raw, *more: decoded.append(more[1]) or decode_head(raw, *more))
    answers = [
        *(table(1, 2), table(1, 2), table(1, 2, 3, file="v2"), table(3, file="v2", at_ms=2, lists="n")),
        *(table(1, uuid="w", file="v3"), table(1, uuid="w", file=""), table(1, uuid="w", file="")),
    ]
    heads = HeadCache()

    async def ask() -> list[Any]:
        access = StorageAccess(ReadMeter())
        made: Any = Catalog(*answers)
        return [await CatalogSource(made, ("t",), "catalog://c/t", access, heads).head() for _ in answers]

    first, same, newer, touched, other, *unnamed = asyncio.run(ask())
    assert same is first
    assert (list(newer.snapshots), newer.snapshots[2] is first.snapshots[2]) == ([1, 2, 3], True)
    assert [one.manifest_list for one in touched.snapshots.values()] == ["u-n-3"], "of another list it is another one"
    assert other.snapshots[1].manifest_list == "w-m-1", "another table's snapshots are its own"
    assert unnamed[0] is not unnamed[1], "metadata without a file are known by nothing"
    assert decoded == ["v1", "v2", "v2", "v3", "", ""]
