"""Of the names in a log directory only commits and complete checkpoints count."""

from decider.formats.delta.listing import Checkpoint, commit_version, read_listing

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def test_everything_but_commits_and_checkpoints_is_passed_over() -> None:
    listing = read_listing(
        [
            f"{3:020d}.json",
            f"{2:020d}.json",
            f"{3:020d}.crc",
            f".{3:020d}.json.crc",
            f"{4:020d}.json.tmp",
            f".tmp/{4:020d}.json",
            f"_staged_commits/{5:020d}.{UUID}.json",
            f"{6:020d}.{UUID}.json",
            f"{1:020d}.{9:020d}.compacted.json",
            f"_sidecars/{UUID}.parquet",
            "_last_checkpoint",
            f"{7:020d}.checkpoint.parquet.tmp",
            f"{7:020d}.checkpoint.not-a-uuid.json",
            "99999999999999999999.json",
            "99999999999999999999.checkpoint.parquet",
            "0000000000000000000\u0667.json",
        ]
    )
    assert listing.commits == (2, 3)
    assert listing.checkpoints == ()
    assert listing.newest == 3


def test_checkpoints_come_newest_first_and_only_whole() -> None:
    names = [
        f"{10:020d}.checkpoint.parquet",
        f"{20:020d}.checkpoint.{1:010d}.{2:010d}.parquet",
        f"{20:020d}.checkpoint.{2:010d}.{2:010d}.parquet",
        f"{30:020d}.checkpoint.{1:010d}.{3:010d}.parquet",
        f"{30:020d}.checkpoint.{3:010d}.{3:010d}.parquet",
        f"{40:020d}.checkpoint.{0:010d}.{0:010d}.parquet",
        f"{25:020d}.checkpoint.{UUID}.json",
        f"{25:020d}.checkpoint.{UUID}.parquet",
    ]
    assert read_listing(names).checkpoints == (
        Checkpoint(25, (names[6],)),
        Checkpoint(25, (names[7],)),
        Checkpoint(20, (names[1], names[2])),
        Checkpoint(10, (names[0],)),
    )
    assert read_listing(names).newest == 25


def test_a_checkpoint_in_one_file_is_preferred_to_parts_of_its_version() -> None:
    parts = [f"{5:020d}.checkpoint.{part:010d}.{2:010d}.parquet" for part in (1, 2)]
    listing = read_listing([*parts, f"{5:020d}.checkpoint.parquet"])
    assert [len(point.parts) for point in listing.checkpoints] == [1, 2]


def test_an_empty_log_has_no_newest_version() -> None:
    assert read_listing([]).newest is None
    assert commit_version("") is None
