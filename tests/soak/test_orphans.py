"""Files that belong to nothing are distinguished by what they are."""

from pathlib import Path

from tests.soak.orphans import Orphans, orphans_of


def test_orphans_are_reported_by_kind(tmp_path: Path) -> None:
    for name in (
        "p=a b/live.parquet",
        "p=a b/.live.parquet.crc",
        "p=a b/half.parquet",
        ".gone.parquet.crc",
        "_delta_log/00000000000000000000.json",
        "_delta_log/00000000000000000010.checkpoint.parquet",
        "_delta_log/_last_checkpoint",
        "_delta_log/00000000000000000003.json#1",
        "_delta_log/.00000000000000000004.json.tmp",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = orphans_of(tmp_path, {"p=a b/live.parquet"})
    assert found == Orphans(
        data=("p=a b/half.parquet",),
        staged=("_delta_log/.00000000000000000004.json.tmp", "_delta_log/00000000000000000003.json#1"),
        hidden=(".gone.parquet.crc",),
    )
    assert found.counts() == {"data": 1, "staged": 2, "hidden": 1}
