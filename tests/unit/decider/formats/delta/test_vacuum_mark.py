"""The end of a vacuum in a log, by us or by another engine, says what is gone from the store."""

import json
from typing import Any

import pytest

from decider.formats.delta.actions import decode_commit
from decider.formats.delta.damage import LogFile
from decider.formats.delta.vacuum_mark import decode_vacuum
from shared.formats.delta_vacuum_plan import RETENTION
from shared.layout.commit_metadata import CommitMetadata
from shared.table import CommitOrigin, TableMetadata, VacuumMark

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS
FOREIGN = {"operation": "VACUUM END", "operationParameters": {"status": "COMPLETED"}}


def test_the_end_of_our_own_vacuum_says_what_it_deleted() -> None:
    ours = CommitMetadata(CommitOrigin("j", 1), vacuumed_version=4, vacuumed_until_ms=17, vacuumed_orphans=1)
    info = FOREIGN | {"userMetadata": ours.encode(), "timestamp": NOW_MS}
    assert decode_vacuum(info, NOW_MS, None) == VacuumMark(17, with_orphans=True)
    body = json.dumps({"commitInfo": info}).encode()
    commit = decode_commit(body, LogFile("memory:///t", 9, "9.json"), TableMetadata("u"))
    assert commit.vacuum == VacuumMark(17, with_orphans=True)


@pytest.mark.parametrize(
    ("configuration", "days"),
    [({}, 7), ({RETENTION: "interval 2 weeks"}, 14), ({RETENTION: "interval 1 month"}, 7)],
)
def test_the_vacuum_of_another_engine_deletes_what_the_tables_retention_permits(
    configuration: dict[str, str], days: int
) -> None:
    expected = VacuumMark(NOW_MS - days * DAY_MS)
    assert decode_vacuum(FOREIGN, NOW_MS, TableMetadata("u", (), configuration)) == expected
    assert decode_vacuum(FOREIGN, NOW_MS, None) == VacuumMark(NOW_MS - 7 * DAY_MS)


@pytest.mark.parametrize(
    "info",
    [
        None,
        [],
        {"operation": "VACUUM START"},
        {"operation": "VACUUM END"},
        {"operation": "VACUUM END", "operationParameters": {"status": "FAILED"}},
    ],
)
def test_no_other_commit_ends_a_vacuum(info: Any) -> None:
    assert decode_vacuum(info, NOW_MS, None) is None
