"""Which stored files an action needs, and what a vacuum may delete; the property test compares it with a replay."""

import json
from typing import Any
from uuid import UUID

import pytest

from shared.errors import Corrupt
from shared.formats.delta_orphans import MIN_ORPHAN_AGE_MS, Kept, OwnFolders, orphan_cutoff_ms, orphan_verdict
from shared.formats.delta_references import FileReference, reference, vector_path
from shared.formats.delta_vacuum import (
    LoggedCommit,
    NeededFiles,
    Tombstone,
    added_since,
    decode_commit,
    in_order,
    needed_files,
    removed_files,
    vacuum_mark,
)
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.stored_file import StoredFile
from shared.table import CommitOrigin
from tests.support.vacuum_world import ROOT, encode_vector

CUTOFF_MS = 1_000


def of(path: str, size: int = 1) -> FileReference:
    return reference({"path": path, "size": size}, ROOT)


def needed_by(
    *commits: LoggedCommit, live: tuple[str, ...] = (), tombstones: tuple[Tombstone, ...] = ()
) -> NeededFiles:
    return needed_files([of(path) for path in live], tombstones, commits, CUTOFF_MS)


def test_a_file_removed_at_the_cutoff_is_needed_and_one_removed_before_is_not() -> None:
    before = LoggedCommit(1, CUTOFF_MS - 1, removed=(of("old", 5),))
    at = LoggedCommit(2, CUTOFF_MS, removed=(of("new"),))
    needed = needed_by(before, at)
    assert "new" in needed
    assert "old" not in needed
    assert removed_files((before, at), (), needed, CUTOFF_MS) == {"old": 5}


def test_a_file_that_was_removed_and_is_live_again_is_needed() -> None:
    before = LoggedCommit(1, 1, removed=(of("a"),))
    needed = needed_by(before, live=("a",))
    assert removed_files((before,), (), needed, CUTOFF_MS) == {}


def test_a_file_that_was_added_and_removed_inside_the_retention_is_needed() -> None:
    old = LoggedCommit(1, 1, removed=(of("a"),))
    assert "a" in needed_by(old, LoggedCommit(2, CUTOFF_MS, added=(of("a"),)))
    assert "c" in needed_by(LoggedCommit(2, CUTOFF_MS, changes=(of("c"),)))


def test_a_tombstone_inside_the_retention_or_without_a_time_keeps_its_file() -> None:
    kept = (Tombstone(of("a"), CUTOFF_MS), Tombstone(of("b"), None))
    needed = needed_by(tombstones=(*kept, Tombstone(of("c", 4), CUTOFF_MS - 1)))
    assert {"a", "b"} <= needed.names
    assert removed_files((), (*kept, Tombstone(of("c", 4), CUTOFF_MS - 1)), needed, CUTOFF_MS) == {"c": 4}


def test_what_an_earlier_vacuum_deleted_is_not_deleted_by_name_again() -> None:
    commits = (
        LoggedCommit(1, 1, removed=(of("a"),)),
        LoggedCommit(2, 2, removed=(of("b"),)),
        LoggedCommit(3, 3, covers_version=1, covers_until_ms=2),
    )
    tombstones = [Tombstone(of("a"), 1), Tombstone(of("c"), 2)]
    assert removed_files(commits, tombstones, needed_by(*commits), CUTOFF_MS) == {"b": 1, "c": 1}


@pytest.mark.parametrize("path", ["_delta_log/00000000000000000000.json", "../other/a.parquet", ".", "_delta_log"])
def test_no_name_in_the_log_lets_a_vacuum_delete_the_log_or_anything_outside_of_the_table(path: str) -> None:
    commit = LoggedCommit(1, 1, removed=(FileReference(((path, 1),), (path,)),))
    assert removed_files((commit,), (), NeededFiles(), CUTOFF_MS) == {}


def test_a_gap_in_the_log_deletes_nothing() -> None:
    with pytest.raises(Corrupt, match="commits 2 to 3 are missing"):
        in_order([LoggedCommit(4, 1), LoggedCommit(1, 1)])
    assert in_order([]) == ()


def test_a_commit_is_at_least_as_late_as_the_one_before_it() -> None:
    """Delta's time travel moves a commit's time behind the one before, where a clock went back."""
    made = in_order([LoggedCommit(2, 5, (of("a"),)), LoggedCommit(1, CUTOFF_MS)])
    assert [one.time_ms for one in made] == [CUTOFF_MS, CUTOFF_MS]
    assert made[1].added == (of("a"),)


def test_the_latest_time_known_of_a_commit_counts() -> None:
    info = {"commitInfo": {"timestamp": 7, "inCommitTimestamp": 9, "operation": "WRITE"}}
    assert decode_commit([info], 3, 8, ROOT).time_ms == 9
    assert decode_commit([info], 3, 11, ROOT).time_ms == 11
    assert decode_commit([{"commitInfo": {"timestamp": "x"}}], 3, 4, ROOT).time_ms == 4
    assert decode_commit([], 3, 4, ROOT) == LoggedCommit(3, 4)


def test_a_commit_names_added_removed_and_change_files() -> None:
    actions = [{"add": {"path": "a"}}, {"remove": {"path": "b"}}, {"cdc": {"path": "_change_data/c"}}, {"txn": {}}]
    made = decode_commit(actions, 1, 2, ROOT)
    assert (made.added, made.removed, made.changes) == ((of("a", 0),), (of("b", 0),), (of("_change_data/c", 0),))
    assert list(added_since([made])) == [of("a", 0), of("b", 0), of("_change_data/c", 0)]


def mark(**changes: Any) -> dict[str, Any]:
    ours = CommitMetadata(CommitOrigin("j", 1), vacuumed_version=5, vacuumed_until_ms=6, vacuumed_orphans=0)
    info = {
        "operation": "VACUUM END",
        "operationParameters": {"status": "COMPLETED"},
        "userMetadata": ours.encode(),
    }
    return info | changes


def test_only_the_end_of_our_own_vacuum_that_deleted_all_covers_commits() -> None:
    assert decode_commit([{"commitInfo": mark()}], 7, 0, ROOT).covers_version == 5
    found = vacuum_mark(mark())
    assert found is not None
    assert (found.vacuumed_until_ms, found.vacuumed_orphans) == (6, 0)
    other = json.dumps({"lakewright": {"job": "j", "token": 1}})
    for changes in (
        {"operation": "OPTIMIZE"},
        {"operationParameters": {"status": "FAILED"}},
        {"operationParameters": None},
        {"operationParameters": {}},
        {"userMetadata": None},
        {"userMetadata": other},
    ):
        assert vacuum_mark(mark(**changes)) is None
        assert decode_commit([{"commitInfo": mark(**changes)}], 7, 0, ROOT).covers_version == -1


FOLDERS = OwnFolders((), ("_dt",))


def verdict(name: str, modified_ms: int = 0, *, folders: OwnFolders = FOLDERS) -> Kept | None:
    needed = NeededFiles({"live.parquet"}, {"elsewhere.parquet"})
    return orphan_verdict(StoredFile(name, 1, modified_ms), needed, {"gone.parquet": 1}, folders, CUTOFF_MS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.parquet", None),
        ("dt=1/a.parquet", Kept.FOREIGN),
        ("_dt=1/a.parquet", None),
        ("_change_data/a.parquet", None),
        ("deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", None),
        ("live.parquet", Kept.NEEDED),
        ("x/elsewhere.parquet", Kept.NEEDED),
        ("gone.parquet", Kept.REMOVED),
        ("_delta_log/00000000000000000010.checkpoint.parquet", Kept.LOG),
        ("_other/a.parquet", Kept.FOREIGN),
        (".hidden/a.parquet", Kept.FOREIGN),
        ("x/_change_data/a.parquet", Kept.FOREIGN),
        ("_tmp.parquet", Kept.FOREIGN),
        ("dt=1/.a.parquet", Kept.FOREIGN),
        ("notes.txt", Kept.FOREIGN),
        ("metadata/v1.metadata.json", Kept.FOREIGN),
        ("deletion_vector_x.bin", Kept.FOREIGN),
    ],
)
def test_only_old_data_files_in_folders_of_the_table_are_orphans(name: str, expected: Kept | None) -> None:
    assert verdict(name) is expected


def test_a_file_written_at_the_bound_is_too_young() -> None:
    assert verdict("a.parquet", CUTOFF_MS) is Kept.YOUNG
    assert verdict("a.parquet", CUTOFF_MS - 1) is None


def test_no_file_of_a_table_inside_the_table_is_an_orphan() -> None:
    names = ["a.parquet", "inner/_delta_log/00000000000000000000.json", "inner/b.parquet", "_delta_log/0.json"]
    # A folder that the log knows, too: a table was made where a partition had been.
    folders = OwnFolders.of(names, (), ["inner/c.parquet"])
    assert verdict("inner/b.parquet", folders=folders) is Kept.FOREIGN
    assert verdict("inner2/b.parquet", folders=OwnFolders.of(names, (), ["inner2/c.parquet"])) is None


def test_an_orphan_is_a_day_old_whatever_the_retention() -> None:
    now_ms = 100 * MIN_ORPHAN_AGE_MS
    assert orphan_cutoff_ms(now_ms, now_ms) == now_ms - MIN_ORPHAN_AGE_MS
    assert orphan_cutoff_ms(5, now_ms) == 5


LOCATION = "s3://bucket/lake/t"
VECTOR = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")


def test_a_vector_in_a_file_of_its_own_has_the_name_that_the_protocol_gives_it() -> None:
    """The example of the protocol, "Deletion Vector Descriptor Schema"."""
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    found = reference({"path": "x.parquet", "size": 7, "deletionVector": vector}, LOCATION)
    name = f"ab/deletion_vector_{VECTOR}.bin"
    assert found.own == (("x.parquet", 7), (name, 0))
    assert set(found.kept) == {"x.parquet", name}
    assert encode_vector(VECTOR) == "^-aqEH.-t@S}K{vb[*k^"


def test_the_path_of_a_vectors_file_is_spelled_as_a_log_spells_paths() -> None:
    escaped = {"storageType": "u", "pathOrInlineDv": "a%2Fb^-aqEH.-t@S}K{vb[*k^"}
    assert vector_path(escaped) == f"a%252Fb/deletion_vector_{VECTOR}.bin"
    assert (
        reference({"path": "x", "deletionVector": escaped}, LOCATION).own[1][0] == f"a%2Fb/deletion_vector_{VECTOR}.bin"
    )
    assert vector_path({"storageType": "p", "pathOrInlineDv": "s3://b/a%20b.bin"}) == "s3://b/a%20b.bin"
    assert vector_path({"storageType": "i", "pathOrInlineDv": "x"}) is vector_path(None) is None


def test_a_vector_without_a_prefix_lies_in_the_tables_folder_and_an_inline_one_nowhere() -> None:
    plain = {"storageType": "u", "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^"}
    assert reference({"path": "x", "deletionVector": plain}, LOCATION).own[1] == (f"deletion_vector_{VECTOR}.bin", 0)
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    assert reference({"path": "x", "deletionVector": inline}, LOCATION).own == (("x", 0),)


@pytest.mark.parametrize(
    ("path", "own", "kept"),
    [
        ("a/b.parquet", "a/b.parquet", {"a/b.parquet"}),
        ("dt=a%20b/c.parquet", "dt=a b/c.parquet", {"dt=a b/c.parquet", "dt=a%20b/c.parquet"}),
        ("./a//b.parquet", "a/b.parquet", {"a/b.parquet"}),
        ("s3a://bucket/lake/t/a/b.parquet", "a/b.parquet", {"a/b.parquet"}),
        ("s3://bucket/lake/t/dt=a%20b/c", "dt=a b/c", {"dt=a b/c"}),
    ],
)
def test_a_path_below_the_table_is_one_name_and_each_name_that_it_could_mean_is_kept(
    path: str, own: str, kept: set[str]
) -> None:
    found = reference({"path": path, "size": 3}, LOCATION)
    assert found.own == (() if "://" in path else ((own, 3),))
    assert set(found.kept) == kept
    assert found.outside == ()


@pytest.mark.parametrize(
    "path",
    [
        "s3://bucket/lake/other/a%20b.parquet",
        "s3://other/lake/t/a%20b.parquet",
        "s3://bucket/lake/t2/a%20b.parquet",
        "gs://bucket/lake/t/a%20b.parquet",
        "weird://bucket/lake/t/a%20b.parquet",
        "/lake/t/a%20b.parquet",
        "s3://bucket/lake/t/../t/a%20b.parquet",
    ],
)
def test_a_path_outside_of_the_table_is_never_its_own_and_its_base_name_is_known(path: str) -> None:
    found = reference({"path": path}, LOCATION)
    assert (found.own, found.kept) == ((), ())
    assert set(found.outside) == {"a b.parquet", "a%20b.parquet"}


def test_a_vector_at_a_path_of_its_own_is_known_as_a_path_is() -> None:
    vector = {"storageType": "p", "pathOrInlineDv": "s3://bucket/lake/t/v.bin"}
    assert reference({"path": "x", "deletionVector": vector}, LOCATION).kept == ("x", "v.bin")
    elsewhere = {"storageType": "p", "pathOrInlineDv": "s3://bucket/source/v.bin"}
    assert set(reference({"path": "x", "deletionVector": elsewhere}, LOCATION).outside) == {"v.bin"}


def test_a_local_table_knows_its_own_absolute_paths() -> None:
    for path in ("/lake/t/a.parquet", "file:/lake/t/a.parquet", "file:///lake/t/a.parquet"):
        assert reference({"path": path}, "file:///lake/t").kept == ("a.parquet",)
