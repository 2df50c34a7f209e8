"""The decider finds and reads tables in folders of any name, and takes none of them for another."""

import asyncio
import json
from pathlib import Path

from decider.formats.registry import table_formats
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.paths.locations import canonical_location, decoded_path, table_id
from tests.support.read_logs import open_log

NAMES = ("a b", "a%20b", "a%2520b", "a+b", "Z\u00fcrich", "Zu\u0308rich", "100%", "x#y", "q?z", "p:1,2", "g[a]{b}*")


def table_of_files(path: Path, files: int) -> None:
    """A log of one commit that names so many files."""
    (path / "_delta_log").mkdir(parents=True)
    schema = json.dumps({"type": "struct", "fields": []})
    adds = [
        {"add": {"path": f"{n}.parquet", "size": 1, "partitionValues": {}, "modificationTime": 0, "dataChange": True}}
        for n in range(files)
    ]
    first = {"metaData": {"id": path.name, "schemaString": schema, "partitionColumns": [], "configuration": {}}}
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, first, *adds]
    (path / "_delta_log" / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def test_discovery_and_the_log_reader_agree_on_every_folder(tmp_path: Path) -> None:
    root = tmp_path / "the lake (100%)"
    for number, name in enumerate(NAMES, 1):
        table_of_files(root / name, number)

    async def found() -> dict[str, int]:
        lake = table_formats(StorageAccess(ReadMeter())).scanner(str(root))
        top = await lake.scan("")
        counts = {}
        for folder in top.folders:
            assert (await lake.scan(folder)).is_table, folder
            location = lake.location_of(folder)
            assert lake.path_of(location) == folder
            snapshot = await open_log(location, meter=ReadMeter()).snapshot()
            assert snapshot.metadata.table_uuid == folder
            counts[location] = len(snapshot.files)
        return counts

    expected = {canonical_location(str(root / name)): number for number, name in enumerate(NAMES, 1)}
    assert asyncio.run(found()) == expected
    assert {Path(decoded_path(location)).name for location in expected} == set(NAMES)
    assert len(set(map(table_id, expected))) == len(NAMES)
