"""The port's main promise on logs that other engines wrote: changes lead from the oldest snapshot to the newest."""

from pathlib import Path

import pytest

from decider.formats.delta.format import DeltaFormat
from decider.formats.table_format import TableReader
from shared.errors import InvalidInput, LakewrightError
from shared.paths.data_paths import PathKey, path_key
from shared.table import DataFile, Snapshot
from tests.contract.formats.worlds import access

GOLDEN = Path(__file__).parents[4] / "shared" / "golden"
TABLES = sorted(path.name for path in GOLDEN.iterdir()) if GOLDEN.is_dir() else []

pytestmark = pytest.mark.skipif(not TABLES, reason=f"the golden tables are not at {GOLDEN}")


async def oldest(reader: TableReader) -> Snapshot | None:
    """Return the oldest snapshot that can be rebuilt, None for a table that is refused as a whole."""
    for position in (await reader.retained()).positions:
        try:
            return await reader.snapshot(position)
        except InvalidInput:
            continue
        except LakewrightError:
            return None
    return None


def live(snapshot: Snapshot) -> dict[PathKey, DataFile]:
    return {path_key(file): file for file in snapshot.files}


@pytest.mark.parametrize("name", TABLES)
async def test_changes_lead_from_the_oldest_snapshot_of_a_golden_log_to_the_newest(name: str) -> None:
    reader = DeltaFormat(access()).open((GOLDEN / name).as_uri())
    base = await oldest(reader)
    if base is None:
        with pytest.raises(LakewrightError):
            await reader.snapshot()
        return
    files, last = live(base), base.position
    async for commit in reader.changes(base.position, base.metadata):
        for gone in commit.removed:
            files.pop(path_key(gone), None)
        files |= {path_key(file): file for file in commit.added}
        assert last < commit.position
        last = commit.position
    newest = await reader.snapshot()
    assert (last, files.keys()) == (newest.position, live(newest).keys())
    assert (await reader.end_of_history(last)).is_end
    assert newest.refusal == reader.refusal(newest.metadata, newest.protocol)
