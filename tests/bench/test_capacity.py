"""The benchmark of capacity runs at a tiny size, so that it works on the day someone needs it."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import capacity
from tests.bench.capacity import Capacity, million

ONE = Capacity(
    tables=10_000,
    sweep_s=300.0,
    first_read_s=10.0,
    settled_s=11.0,
    first_cpu_ms_per_table=1.0,
    decider_mib=100.0,
    redis_mib=20.0,
    redis_bytes_per_table=1_000.0,
    swept_per_s=40.0,
    decider_share=0.1,
    redis_share=0.01,
    commits_per_s=5.0,
    busy_decider_share=0.2,
    busy_redis_share=0.02,
    lag_s=0.1,
    jobs=7,
    busy_slots=1.5,
)


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
    arguments = f"--sizes 3 6 --seconds 4 --per-s 5 --json {kept}".split()
    monkeypatch.setattr(sys, "argv", ["capacity", *arguments])
    monkeypatch.setattr(capacity, "SWEEP_S", 6.0)
    capacity.main()
    figures = json.loads(kept.read_text())
    assert [one["tables"] for one in figures["sizes"]] == [3, 6]
    for one in figures["sizes"]:
        assert one["commits_per_s"] > 1
        assert one["busy_decider_share"] > 0
        assert one["swept_per_s"] > 0
        assert one["redis_bytes_per_table"] > 100
    assert figures["million"].keys() >= {"redis_mib", "decider_mib"}
