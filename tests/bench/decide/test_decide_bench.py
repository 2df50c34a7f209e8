"""The benchmark of the decider runs at a tiny size, so that it works on the day someone needs it."""

import json
import sys
from pathlib import Path

import pytest

from tests.bench.decide import __main__ as bench
from tests.bench.decide.latency import quantile

pytestmark = [pytest.mark.redis, pytest.mark.e2e]

TINY = (
    "--commits 16 --iceberg-commits 16 --rounds 1 --per-s 40 --seconds 0.5 --windows 1 --few 2 --many 5 --partitions 1"
)


def test_every_figure_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "decide.json"
    monkeypatch.setattr(sys, "argv", ["decide", *TINY.split(), "--json", str(kept)])
    bench.main()
    figures = json.loads(kept.read_text())
    assert figures["commits_per_s_per_core"] > 0
    assert 0 < figures["p50_ms_at_200"] <= figures["p99_ms_at_200"]
    assert figures["latency_ratio_100k_to_100_tables"] > 0
    assert figures["partitions_weighed"] == 365
    assert figures["cpu_over_decoding"] > 1
    assert all(figures[f"mean_ms_{phase}"] > 0 for phase in ("accepting", "waiting", "reading", "folding", "redis"))
    assert 50 < figures["bytes_per_partition"] < 5_000
    assert figures["iceberg_commits_per_s_per_core"] > 0
    assert 50 < figures["iceberg_bytes_per_partition"] < 5_000


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.5, 51), (0.99, 100), (1.0, 100)])
def test_a_quantile_is_one_of_the_values(share: float, expected: float) -> None:
    assert quantile([float(n) for n in range(100, 0, -1)], share) == expected
