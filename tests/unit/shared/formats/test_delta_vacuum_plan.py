"""What a vacuum plans to delete: folders of others, spellings of stores, logs that were cleaned up, and retentions."""

from unicodedata import normalize

import pytest

from shared.errors import InvalidInput
from shared.formats.delta_orphans import Kept, OwnFolders, orphan_verdict
from shared.formats.delta_references import FileReference, reference
from shared.formats.delta_vacuum import LoggedCommit, Tombstone
from shared.formats.delta_vacuum_plan import (
    DEFAULT_RETENTION_S,
    VacuumInputs,
    VacuumPlan,
    log_retention_ms,
    plan_vacuum,
    retention_ms,
    tombstone_retention_s,
)
from shared.jobs.options import VacuumOptions
from shared.paths.stored_file import StoredFile
from shared.policy.policy import Policy
from shared.table import TableMetadata
from tests.support.vacuum_world import ROOT

DAY_MS = 86_400_000
NOW_MS = 1_000 * DAY_MS


def of(path: str) -> FileReference:
    return reference({"path": path, "size": 1}, ROOT)


def plan(
    *,
    live: tuple[str, ...] = (),
    commits: tuple[LoggedCommit, ...] = (),
    tombstones: tuple[Tombstone, ...] = (),
    listing: dict[str, int] | None = None,
    columns: tuple[str, ...] = (),
    retain_days: int = 7,
) -> VacuumPlan:
    listed = (
        None if listing is None else [StoredFile(name, 1, NOW_MS - days * DAY_MS) for name, days in listing.items()]
    )
    known = commits or (LoggedCommit(0, 0),)
    inputs = VacuumInputs(100, columns, [of(path) for path in live], tombstones, known, listed)
    return plan_vacuum(inputs, retain_days * DAY_MS, NOW_MS)


def test_a_file_that_no_commit_names_in_a_folder_of_the_table_is_an_orphan() -> None:
    """The control of all tests below, in which nothing is deleted."""
    listing = {"a.parquet": 30, "p=1/b.parquet": 30, "xy/c.parquet": 30, "_change_data/p=1/d.parquet": 30}
    found = plan(live=("xy/live.parquet",), listing=listing, columns=("p",))
    assert deleted(found) == set(listing)
    cleaned = plan(commits=(LoggedCommit(3, NOW_MS),), listing=listing)
    assert (deleted(cleaned), cleaned.kept) == (set(), {Kept.UNKNOWN: 1, Kept.FOREIGN: 3})


@pytest.mark.parametrize("mark", ["snapshot/LATEST", "metadata/v1.metadata.json", ".hoodie/hoodie.properties"])
def test_a_folder_that_is_a_table_of_another_system_too_has_no_orphans(mark: str) -> None:
    listing = {"a.parquet": 30, "_delta_log/00000000000000000000.json": 30, "notes.txt": 30}
    found = plan(listing=listing | {mark: 30})
    assert deleted(found) == set()
    assert "is that of a table of" in found.left_out
    assert found.kept[Kept.FOREIGN] == 3, "what is not recognized is counted, and the log is"
    assert (deleted(plan(listing=listing)), plan(listing=listing).left_out) == ({"a.parquet"}, "")
    below = plan(listing=listing | {f"below/{mark}": 30, "below/b.parquet": 30}, live=("below/c.parquet",))
    assert (deleted(below), below.left_out) == ({"a.parquet"}, "")


def deleted(found: VacuumPlan) -> set[str]:
    return {*found.removed, *(one.name for one in found.orphans)}


def test_no_orphan_is_deleted_that_a_commit_inside_the_retention_may_have_removed_that_was_cleaned_up() -> None:
    """Retention of a year for shallow clones, log of 30 days: a file removed 40 days ago has no trace in the log."""
    newest = LoggedCommit(100, NOW_MS - 1, added=(of("new.parquet"),))
    oldest = LoggedCommit(99, NOW_MS - 30 * DAY_MS, added=(of("live.parquet"),))
    found = plan(
        live=("new.parquet", "live.parquet"),
        commits=(oldest, newest),
        listing={"removed-40-days-ago.parquet": 400, "live.parquet": 30},
        retain_days=365,
    )
    assert deleted(found) == set()


@pytest.mark.parametrize(
    ("logged", "stored"),
    [
        ("p=A/part-1.parquet", "p=a/part-1.parquet"),
        (
            normalize("NFC", "p=Zürich/part-ü.parquet"),
            normalize("NFD", "p=Zürich/part-ü.parquet"),
        ),
        ("p=a%2520b/part-1.parquet", "p=a b/part-1.parquet"),
        ("part-1.PARQUET", "part-1.parquet"),
    ],
)
def test_a_live_file_that_the_store_spells_otherwise_is_no_orphan(logged: str, stored: str) -> None:
    """Stores that fold case (NTFS, APFS, SMB) or normalize; engines that encode once more. Base names are unique."""
    assert deleted(plan(live=(logged,), listing={stored: 30}, columns=("p",))) == set()


@pytest.mark.parametrize(
    "marker",
    ["ice/metadata/v1.metadata.json", "ice/metadata/00001-x.metadata.json", "ice/.hoodie/hoodie.properties"],
)
def test_no_file_of_an_iceberg_or_hudi_table_inside_the_table_is_an_orphan(marker: str) -> None:
    listing = {marker: 30, "ice/data/p=1/a.parquet": 30, "ice/b.parquet": 30}
    assert deleted(plan(listing=listing)) == set()


@pytest.mark.parametrize(
    "marker", ["p=1/metadata/v1.metadata.json", "p=1/ice/.hoodie/hoodie.properties", "metadata/v1.gz.metadata.json"]
)
def test_no_file_beside_the_metadata_of_another_format_is_an_orphan(marker: str) -> None:
    """Even in a folder of the table: a table that two formats share has files that its Delta log does not know yet."""
    found = plan(live=("p=1/live.parquet", "p=1/ice/live.parquet"), listing={marker: 30, "p=1/ice/a.parquet": 30})
    assert deleted(found) == set()


def test_the_tables_own_metadata_folders_are_those_of_no_other_format() -> None:
    names = {"_delta_log/00000000000000000001.json": 30, "p=1/a.parquet": 30, "metadata/x.json": 30}
    assert deleted(plan(listing=names, columns=("p",))) == {"p=1/a.parquet"}


@pytest.mark.parametrize(
    "name", ["exports/2024.parquet", "exports.parquet/part-0.parquet", "p=1/backup/a.parquet", "q=1/a.parquet"]
)
def test_no_file_in_a_folder_that_is_none_of_the_tables_is_an_orphan(name: str) -> None:
    """A folder of the table: its root, one of all partition columns, or one in which the log names a file."""
    assert deleted(plan(live=("p=1/live.parquet",), listing={name: 30}, columns=("p",))) == set()


def test_a_file_by_absolute_path_in_a_table_inside_is_not_deleted_by_name() -> None:
    """A shallow clone whose source lies below it: the clone removes its reference, the source keeps the file."""
    commit = LoggedCommit(1, NOW_MS - 30 * DAY_MS, removed=(of(f"{ROOT}/source/part-1.parquet"),))
    listing = {"source/_delta_log/00000000000000000000.json": 30, "source/part-1.parquet": 30}
    assert deleted(plan(commits=(commit,), listing=listing)) == set()
    assert deleted(plan(commits=(commit,))) == set()


@pytest.mark.parametrize("name", ["inner/_delta_log/00000000000000000000.json", "inner/_delta_log/_last_checkpoint"])
def test_no_file_of_any_log_is_deleted_by_name(name: str) -> None:
    commit = LoggedCommit(1, NOW_MS - 30 * DAY_MS, removed=(of(name),))
    assert deleted(plan(commits=(commit,))) == set()


@pytest.mark.parametrize("name", ["live.parquet/", "live.parquet/.", "p=1/..", "p=1/live.parquet/"])
def test_no_name_that_a_store_reads_as_another_is_deleted(name: str) -> None:
    """Hadoop's paths end in no slash and in no dot: `live.parquet/` is the live file."""
    commit = LoggedCommit(1, NOW_MS - 30 * DAY_MS, removed=(of(name),))
    assert deleted(plan(live=("live.parquet", "p=1/live.parquet"), commits=(commit,))) == set()


def test_an_orphan_in_an_unknown_kind_of_hidden_folder_is_left_alone() -> None:
    folders = OwnFolders.of([], ("_delta_log",))
    name = "_delta_log/_sidecars/a.parquet"
    found = plan(listing={name: 30, "_delta_index/a.parquet": 30, ".tmp/a.parquet": 30}, columns=("_date",))
    assert deleted(found) == set()
    assert orphan_verdict(StoredFile(name, 1, 0), found.needed, {}, folders, NOW_MS) is Kept.LOG


def metadata(**configuration: str) -> TableMetadata:
    return TableMetadata(
        "id", (), {name.replace("__", ".").replace("_", "-"): value for name, value in configuration.items()}
    )


SIXTY = 60 * DAY_MS


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (Policy(min_retain_s=60 * 86_400), VacuumOptions(retain_s=7 * 86_400)),
        (Policy(retain_s=60 * 86_400), VacuumOptions(retain_s=7 * 86_400)),
    ],
)
def test_an_unforced_request_does_not_go_below_the_policy_of_its_job(policy: Policy, options: VacuumOptions) -> None:
    assert retention_ms(policy, metadata(), options) == SIXTY


@pytest.mark.parametrize("options", [VacuumOptions(), VacuumOptions(retain_s=7 * 86_400)])
def test_the_least_retention_that_the_owner_has_set_since_counts(options: VacuumOptions) -> None:
    """docs/storage.md: the actor computes the retention again from the table's newest properties."""
    newest = metadata(lakewright__min_retain="60 days")
    assert retention_ms(Policy(), newest, options) == SIXTY


def test_an_own_least_retention_does_not_hide_deltas() -> None:
    newest = TableMetadata(
        "id", (), {"lakewright.min-retain": "7 days", "delta.deletedFileRetentionDuration": "interval 60 days"}
    )
    assert retention_ms(Policy(), newest, VacuumOptions()) == SIXTY


def test_a_retention_that_cannot_be_read_deletes_nothing_whichever_property_it_is() -> None:
    for name in ("lakewright.retain", "lakewright.min-retain", "acid.data.retain.hours", "snapshot.base.keep.minutes"):
        with pytest.raises(Exception, match=name):
            retention_ms(Policy(), TableMetadata("id", (), {name: "sixty days"}), VacuumOptions())


LOG = "delta.logRetentionDuration"
HOURS_TO_RETAIN = "acid.data.retain.hours"


@pytest.mark.parametrize(
    ("configuration", "days"),
    [
        ({}, 30),
        ({LOG: "interval 10 days"}, 10),
        ({LOG: "interval 6 days"}, None),
        ({"lakewright.retain": "31 days"}, None),
        ({HOURS_TO_RETAIN: "24"}, 1),
        ({HOURS_TO_RETAIN: "24", "lakewright.retain": "31 days"}, 31),
        ({HOURS_TO_RETAIN: "24", LOG: "interval 2 days"}, 2),
        ({HOURS_TO_RETAIN: "72", LOG: "interval 2 days"}, None),
        ({LOG: "soon"}, None),
        ({"delta.deletedFileRetentionDuration": "soon"}, None),
    ],
)
def test_the_log_is_kept_as_long_as_files_and_never_less(configuration: dict[str, str], days: int | None) -> None:
    found = log_retention_ms(Policy(min_retain_s=0), TableMetadata("id", (), configuration))
    assert found == (None if days is None else days * DAY_MS)


def test_force_without_a_retention_forces_nothing() -> None:
    assert retention_ms(Policy(), metadata(), VacuumOptions(force=True)) == DEFAULT_RETENTION_S * 1000


def test_only_a_retention_that_cannot_be_read_stops_a_vacuum() -> None:
    other = TableMetadata("id", (), {"lakewright.fan-in": "many"})
    assert retention_ms(Policy(), other, VacuumOptions()) == DEFAULT_RETENTION_S * 1000
    with pytest.raises(InvalidInput, match="soon"):
        tombstone_retention_s({"delta.deletedFileRetentionDuration": "soon"})
