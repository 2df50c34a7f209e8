"""Our reader and the table's other readers agree on every golden table, or the refusal is stated here.

The second opinions are `deltalake` (which hides deletion vectors and tags) and a plain replay of the JSON commits.
"""

import asyncio
import shutil
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from decider.storage.object_reads import ReadKind, ReadMeter
from shared.errors import Corrupt, LakewrightError
from shared.partitions import partition_values
from shared.table import Snapshot
from tests.support.delta_tables import open_log
from tests.support.random_logs import plain_replay

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"
NO_GOLDEN = f"the golden tables are not at {GOLDEN}"

pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason=NO_GOLDEN)

REFUSED: dict[str, tuple[type[LakewrightError], str]] = {
    "versions-not-contiguous": (Corrupt, "version 1, .*: this commit is missing, later ones exist"),
}
"""Tables that we refuse, with the error and why: a commit that no one can know of may have changed anything."""

DELTALAKE_FAILS: dict[str, dict[str, int]] = {
    "canonicalized-paths-normal-a": {},
    "canonicalized-paths-special-a": {},
    "corrupted-last-checkpoint": {str(number): 1 for number in range(11)},
}
"""Tables that deltalake cannot open because they have no schema, with the live files (path: size) at the newest
version, read off their commits by hand: a removal under `file:/x` takes away `/x`; `0` to `10` are added in turn."""

TABLES = sorted(path.name for path in GOLDEN.iterdir()) if GOLDEN.is_dir() else []


def read(location: Path, version: int | None = None, meter: ReadMeter | None = None) -> Snapshot:
    return asyncio.run(open_log(str(location), meter=meter or ReadMeter()).snapshot(version))


def ours(snapshot: Snapshot) -> dict[str, tuple[int, dict[str, str | None]]]:
    """Return size and partition values by path as the log spells it; a path twice would be two entries of one file."""
    names = {column.physical: column.name for column in snapshot.metadata.partition_columns}
    files = {
        file.path: (file.size_bytes, {names[key]: value for key, value in partition_values(file.partition).items()})
        for file in snapshot.files
    }
    assert len(files) == len(snapshot.files)
    return files


def theirs(table: DeltaTable) -> dict[str, tuple[int, dict[str, str | None]]]:
    columns = table.metadata().partition_columns
    rows: list[dict[str, Any]] = rows_of(table)
    return {
        row["path"]: (row["size_bytes"], {name: spelled(row[f"partition.{name}"]) for name in columns}) for row in rows
    }


def rows_of(table: DeltaTable) -> list[dict[str, Any]]:
    actions = table.get_add_actions(flatten=True)
    columns = {name: actions.column(name).to_pylist() for name in actions.column_names}
    return [{name: values[index] for name, values in columns.items()} for index in range(actions.num_rows)]


def spelled(value: object) -> str | None:
    """Return a typed partition value as our partitions spell it."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case datetime():
            return value.replace(tzinfo=None).isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case Decimal():
            return str(value.normalize())
        case _:
            return str(value)


def versions_of(name: str) -> list[int]:
    return sorted(int(path.stem) for path in (GOLDEN / name / "_delta_log").glob("0*.json") if path.stem.isdigit())


@pytest.mark.parametrize("name", [name for name in TABLES if name not in REFUSED and name not in DELTALAKE_FAILS])
def test_every_version_of_a_table_reads_as_deltalake_reads_it(name: str) -> None:
    for version in versions_of(name):
        snapshot = read(GOLDEN / name, version)
        assert snapshot.version == version
        assert ours(snapshot) == theirs(DeltaTable(GOLDEN / name, version=version)), f"version {version}"
    newest = DeltaTable(GOLDEN / name)
    assert read(GOLDEN / name).version == newest.version()
    assert ours(read(GOLDEN / name)) == theirs(newest)


@pytest.mark.parametrize("name", sorted(DELTALAKE_FAILS))
def test_a_table_that_deltalake_cannot_read_reads_as_its_commits_say(name: str) -> None:
    with pytest.raises(Exception, match="schemaString"):
        DeltaTable(GOLDEN / name)
    snapshot = read(GOLDEN / name)
    assert {file.path: file.size_bytes for file in snapshot.files} == DELTALAKE_FAILS[name]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_table_that_cannot_be_known_is_refused_with_the_reason(name: str) -> None:
    kind, reason = REFUSED[name]
    with pytest.raises(kind, match=reason):
        read(GOLDEN / name)


def test_every_golden_table_is_covered() -> None:
    """A stated exception for a table that is gone would go unnoticed."""
    assert len(TABLES) >= 28
    assert (REFUSED.keys() | DELTALAKE_FAILS.keys()) <= set(TABLES)


@pytest.mark.parametrize("name", [name for name in TABLES if name not in REFUSED])
def test_every_version_reads_as_a_plain_replay_of_its_commits(name: str) -> None:
    """This covers deletion vectors and raw paths, on which deltalake is silent."""
    for version in versions_of(name):
        expected = plain_replay(GOLDEN / name, version)
        files = read(GOLDEN / name, version).files
        assert {(file.path, file.dv_id, file.size_bytes) for file in files} == {
            (file.path, file.dv, file.size) for file in expected
        }
        assert len(files) == len(expected)


def test_of_one_file_with_successive_vectors_only_the_last_is_live() -> None:
    snapshot = read(GOLDEN / "log-replay-dv-key-cases")
    (file,) = snapshot.files
    assert (file.dv_id, file.rows, file.deleted_rows) == ("u^jP?.<zvDfIGb{C.FPij@1", 50, 3)


def test_vectors_survive_a_checkpoint() -> None:
    files = read(GOLDEN / "dv-partitioned-with-checkpoint").files
    assert sum(file.dv_id is not None for file in files) == sum(file.deleted_rows > 0 for file in files) > 0
    at_checkpoint = read(GOLDEN / "dv-partitioned-with-checkpoint", 10)
    expected = plain_replay(GOLDEN / "dv-partitioned-with-checkpoint", 10)
    assert {(file.path, file.dv_id) for file in at_checkpoint.files} == {(file.path, file.dv) for file in expected}


def test_a_version_below_a_hole_is_still_readable() -> None:
    assert [file.path for file in read(GOLDEN / "versions-not-contiguous", 0).files] == ["foo"]


CHECKPOINTED = {
    "basic-with-inserts-deletes-checkpoint": 10,
    "basic-with-inserts-overwrite-restore": 3,
    "corrupted-last-checkpoint": 10,
    "dv-partitioned-with-checkpoint": 10,
    "multi-part-checkpoint": 1,
    "only-checkpoint-files": 2,
    "v2-checkpoint-json": 2,
}
"""Tables with a checkpoint, and the version of the newest one."""


def cleaned_up(tmp_path: Path, name: str) -> Path:
    """Copy a table's log without the commits that its newest checkpoint covers."""
    copy = tmp_path / name
    shutil.copytree(GOLDEN / name / "_delta_log", copy / "_delta_log", copy_function=shutil.copyfile)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o755)
    for version in range(CHECKPOINTED[name] + 1):
        (copy / "_delta_log" / f"{version:020d}.json").unlink()
    return copy


@pytest.mark.parametrize("name", sorted(CHECKPOINTED))
@pytest.mark.parametrize("hint", ["kept", "gone", "garbage", "stale", "beyond", "wrong type"])
def test_a_log_without_its_old_commits_reads_the_same_whatever_the_hint_says(
    name: str, hint: str, tmp_path: Path
) -> None:
    whole = read(GOLDEN / name)
    copy = cleaned_up(tmp_path, name)
    last = copy / "_delta_log" / "_last_checkpoint"
    match hint:
        case "gone":
            last.unlink()
        case "garbage":
            last.write_bytes(b'{"version":\xff')
        case "stale":
            last.write_text('{"version":0,"size":1}', encoding="utf-8")
        case "beyond":
            last.write_text('{"version":999,"size":1}', encoding="utf-8")
        case "wrong type":
            last.write_text('{"version":"10"}', encoding="utf-8")
    meter = ReadMeter()
    without = read(copy, meter=meter)
    assert set(without.files) == set(whole.files)
    assert {file.key: (file.rows, file.deleted_rows, file.modified_ms) for file in without.files} == {
        file.key: (file.rows, file.deleted_rows, file.modified_ms) for file in whole.files
    }
    assert (without.version, without.metadata, without.protocol) == (whole.version, whole.metadata, whole.protocol)
    assert meter.counts[ReadKind.LIST] == (2 if hint == "beyond" else 1)
