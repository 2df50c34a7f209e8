"""What one call says of the files of a scan is what Iceberg's objects say, asked field by field."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from actor.ports import GroupStatus
from shared.partitions import WHOLE_TABLE
from tests.contract.test_iceberg_rewrite import KINDS, MERGE_ON_READ

if TYPE_CHECKING:
    from actor.formats.iceberg.inputs import LiveInput
    from tests.support.iceberg_lab import IcebergLab

pytestmark = pytest.mark.spark


def both(ice: "IcebergLab", table: str) -> list[dict[str, "LiveInput"]]:
    """Return all live files as both ways describe them, without Iceberg's objects."""
    found = []
    for is_at_once in (True, False):
        java = ice.engine._tables.load(ice.location(table))
        if is_at_once:
            java.with_classes = partial(ice.engine._with_classes, ice.session)
        head = java.refresh()
        assert head.current is not None
        live = java.inputs(head, head.current, partitions=None)
        with_tasks = java.inputs(
            head, head.current, partitions={one.file.partition for one in live.values()}, paths=live
        )
        assert {path: str(one.task.file().location()) for path, one in with_tasks.items()} == {
            path: path for path in live
        }
        for one in live.values():
            assert java.inputs(head, head.current, partitions={one.file.partition})[one.path].file == one.file
        found.append(live)
    return found


@pytest.mark.parametrize(
    "kind", [kind if kind == "v2 by value" else pytest.param(kind, marks=pytest.mark.long("iceberg")) for kind in KINDS]
)
def test_both_ways_describe_the_same_files(ice: "IcebergLab", kind: str) -> None:
    """Files of an older spec, files with deletes by position, and files of null partitions are among them."""
    version, by = KINDS[kind]
    table = ice.create("t", version=version, by=by, properties=MERGE_ON_READ if version > 1 else {})
    for number in range(3):
        ice.append(table, number)
    ice.sql(f"INSERT INTO {table} VALUES (NULL, NULL, NULL, NULL, NULL)")
    ice.sql(f"DELETE FROM {table} WHERE id IN (3, 25)")
    ice.java(table).updateSpec().addField("x").commit()
    ice.append(table, 3)
    at_once, asked = both(ice, table)
    assert at_once == asked
    assert len({one.file.partition for one in asked.values()}) > 2
    assert len({one.spec for one in asked.values()}) == 2
    assert any(one.deletes for one in asked.values()) == (version > 1)


def test_metadata_that_are_read_as_what_changed_are_those_that_are_read_whole(ice: "IcebergLab") -> None:
    table = ice.create("t")
    ice.append(table, 0)
    java = ice.engine._tables.load(ice.location(table))
    java.with_classes = partial(ice.engine._with_classes, ice.session)
    seen = [java.head()]
    for number in (1, 2):
        ice.append(table, number)
        seen.append(java.refresh())
    ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('label'='x')")
    seen.append(java.refresh())
    java.raw.expireSnapshots().expireSnapshotId(seen[0].current).commit()
    seen.append(java.refresh())
    assert [len(one.snapshots) for one in seen] == [1, 2, 3, 3, 2]
    assert java.head() is seen[-1]
    whole = java.whole_head()
    assert replace(seen[-1], records=whole.records) == whole
    assert seen[-1].records.path == whole.records.path
    assert seen[-1].snapshots[seen[1].current or 0] is seen[1].snapshots[seen[1].current or 0]


MAX_ROUND_TRIPS = 60
"""Calls of a job from Python into the JVM, each a third of a millisecond of CPU; 128 before they were joined."""


def test_a_job_takes_few_round_trips_to_the_jvm(ice: "IcebergLab", monkeypatch: pytest.MonkeyPatch) -> None:
    table = ice.create("t")
    for number in range(5):
        ice.append(table, number)

    def job(count: int) -> None:
        files = ice.live(table, WHOLE_TABLE)[:count]
        assert ice.rewrite(table, files).groups[0].status is GroupStatus.COMMITTED

    job(2)
    client, calls = ice.session.sparkContext._gateway._gateway_client, list[str]()
    real = client.send_command

    def counted(command: str, *more: object, **named: object) -> object:
        calls.append(command)
        return real(command, *more, **named)

    monkeypatch.setattr(client, "send_command", counted)
    job(3)
    made = [one for one in calls if not one.startswith("m")]  # Objects that Python lets go of are told to the JVM.
    assert len(made) <= MAX_ROUND_TRIPS, "\n".join(made)
