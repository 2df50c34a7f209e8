"""A mark is read back as it was written, and what others write is never taken for one."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from shared.index.stats import index_stats
from shared.layout import commit_metadata
from shared.layout.commit_metadata import FORM, CommitMetadata
from shared.policy.levels import build_size_levels
from shared.table import CellReport, CommitOrigin


def test_a_mark_is_small() -> None:
    full = CommitMetadata(
        CommitOrigin("sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact", 1_767_276_187_000_812),
        partition='{"dt":"2026-01-01"}',
        round=1,
        mode="major",
        started_ms=1_767_276_187_000,
        size_levels=build_size_levels(128 << 20, 8, Fraction(3, 4)),
        partition_files=1_000,
        partition_small_files=900,
    )
    assert len(full.encode()) < 300


@pytest.mark.parametrize(
    "user_metadata",
    [
        None,
        7,
        "",
        "lakewright",
        "[]",
        '{"lakewright": 1}',
        '{"lakewright": {"job": "j"}}',
        '{"lakewright": {"job": "", "token": 1}}',
        '{"lakewright": {"job": "j", "token": true}}',
        '{"lakewright": {"job": "j", "token": "1"}}',
        '{"lakewright": ' * 20_000,
    ],
)
def test_what_others_write_is_no_ones_mark(user_metadata: object) -> None:
    assert commit_metadata.decode(user_metadata) is None


def test_fields_that_are_damaged_or_from_a_later_form_are_unknown_and_the_origin_stays() -> None:
    others = [["i"], [3, 4], "k", ["l", -1]]
    plain = {"round": "1", "size_levels": [0, 8, 1], "started_ms": None, "partition": 3}
    damaged = {"job": "j", "token": 1, "others": others, **plain}
    assert commit_metadata.decode(json.dumps({"lakewright": damaged})) == CommitMetadata(CommitOrigin("j", 1))
    later = {"form": FORM + 1, "job": "j", "token": 1, "round": 1, "partition": "{}"}
    assert commit_metadata.decode(json.dumps({"lakewright": later})) == CommitMetadata(CommitOrigin("j", 1))


def test_the_index_data_of_the_inputs_is_read_back() -> None:
    mark = CommitMetadata(
        CommitOrigin("j", 1), index_selection="sampling", index_input=index_stats([[("", 5), ("A", 1)], []])
    )
    assert commit_metadata.decode(mark.encode()) == mark


def test_a_report_on_cells_has_all_of_its_counts_or_is_none() -> None:
    mark = CommitMetadata(CommitOrigin("j", 1), left_bytes=5, settled_files=2, settled_bytes=-1)
    assert mark.cell_report == CellReport(5, 2, 0)
    assert replace(mark, settled_files=None).cell_report is None


def test_each_rewrite_of_a_claim_has_a_name_of_its_own() -> None:
    origin = CommitOrigin("j", 7)
    names = [CommitMetadata(origin, round=number).write_id for number in (None, 1, 2)]
    assert names == ["j/7/0", "j/7/1", "j/7/2"]


@pytest.mark.parametrize("typical_file_bytes", [0, 3_000_000])
def test_the_levels_of_a_rewrite_are_read_back_as_they_were(typical_file_bytes: int) -> None:
    levels = build_size_levels(128 << 20, 8, Fraction(3, 4), typical_file_bytes=typical_file_bytes)
    found = commit_metadata.decode(CommitMetadata(CommitOrigin("j", 1), size_levels=levels).encode())
    assert found is not None
    assert found.size_levels == levels
