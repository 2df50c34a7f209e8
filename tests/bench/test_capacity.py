"""The benchmark of capacity runs at a tiny size, so that it works on the day someone needs it."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import capacity
from tests.bench.capacity import Capacity, million

ONE = Capacity(10_000, 300.0, 10.0, 1.0, 100.0, 20.0, 1_000.0, 0.1, 0.01, 5.0, 0.2, 0.02, 0.1, 7, 1.5)


def test_a_million_tables_are_extended_from_the_two_largest_sizes() -> None:
    small, large = replace(ONE, tables=1_000, redis_mib=999.0), replace(ONE, tables=100_000, redis_mib=110.0)
    found = million([large, small, ONE])
    assert found["redis_mib"] == 1_010.0
    assert found["decider_mib"] == 100.0


@pytest.mark.redis
@pytest.mark.e2e
@pytest.mark.long("contracts")
def test_every_figure_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "capacity.json"
    arguments = f"--sizes 3 6 --seconds 2 --per-s 5 --json {kept}".split()
    monkeypatch.setattr(sys, "argv", ["capacity", *arguments])
    capacity.main()
    figures = json.loads(kept.read_text())
    assert [one["tables"] for one in figures["sizes"]] == [3, 6]
    for one in figures["sizes"]:
        assert one["commits_per_s"] > 1
        assert one["busy_decider_share"] > 0
        assert one["redis_bytes_per_table"] > 100
    assert figures["million"].keys() >= {"redis_mib", "decider_mib"}
