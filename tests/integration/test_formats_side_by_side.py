"""Tables of two formats lie below one root, and one may take the place of another."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.formats.options import FormatOptions
from tests.support.iceberg_folder import IcebergFolder
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings

pytestmark = [pytest.mark.redis, pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")]


@pytest.fixture
def decider(redis_url: str, tmp_path: Path) -> Iterator[LiveDecider]:
    formats = FormatOptions(iceberg_folders=True)
    with LiveDecider(decider_settings(redis_url, roots=(str(tmp_path),), formats=formats)) as live:
        yield live


def iceberg_table(place: Path, files: int) -> None:
    made = IcebergFolder(place)
    made.create("00000000-0000-4000-8000-000000000001")
    made.commit([made.file(100) for _ in range(files)])


def test_discovery_finds_tables_of_every_format(decider: LiveDecider, tmp_path: Path) -> None:
    iceberg_table(tmp_path / "sales" / "clicks", files=1)
    WrittenTable(tmp_path / "sales" / "orders")
    decider.run(decider.services.requests.discovery.run_once())
    decider.drain()
    assert {one["name"] for one in decider.get("/v1/tables")["tables"]} == {"sales.clicks", "sales.orders"}


def test_a_table_of_another_format_may_take_a_place(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader that was kept for a table gives way once its format is no longer there."""
    monkeypatch.setattr("decider.tracking.table_context.TRUSTED_MS", 0)
    place = tmp_path / "t"
    WrittenTable(place)
    name = decider.register(place, "t")
    shutil.rmtree(place)
    iceberg_table(place, files=3)
    decider.sweep()
    decider.sweep()
    (partition,) = decider.partitions(name).values()
    assert partition.files == 3
