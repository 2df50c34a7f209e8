"""The benchmark of the decider runs at a tiny size, so that it works on the day someone needs it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.decide import __main__ as bench
from tests.bench.decide.latency import quantile

pytestmark = [pytest.mark.redis, pytest.mark.e2e]

TINY = (
    "--commits 16 --iceberg-commits 0 --rounds 1 --per-s 40 --seconds 0.5 --windows 1 --few 2 --many 5 --partitions 1"
)
TINY_ICEBERG = "--only-iceberg --iceberg-commits 16 --rounds 1"


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    def run(arguments: str) -> dict[str, Any]:
        kept = tmp_path / "decide.json"
        monkeypatch.setattr(sys, "argv", ["decide", *arguments.split(), "--json", str(kept)])
        bench.main()
        figures: dict[str, Any] = json.loads(kept.read_text())
        return figures

    return run


@pytest.mark.long("contracts")
def test_every_figure_is_measured(measured: Callable[[str], dict[str, Any]]) -> None:
    figures = measured(TINY)
    assert figures["commits_per_s_per_core"] > 0
    assert 0 < figures["p50_ms_at_200"] <= figures["p99_ms_at_200"]
    assert figures["latency_ratio_100k_to_100_tables"] > 0
    assert figures["partitions_weighed"] == 365
    assert figures["cpu_over_decoding"] > 1
    assert all(figures[f"mean_ms_{phase}"] > 0 for phase in ("accepting", "waiting", "reading", "folding", "redis"))
    assert 50 < figures["bytes_per_partition"] < 5_000


@pytest.mark.long("iceberg")
def test_every_figure_of_iceberg_is_measured(measured: Callable[[str], dict[str, Any]]) -> None:
    figures = measured(TINY_ICEBERG)
    assert figures["iceberg_commits_per_s_per_core"] > 0
    assert 50 < figures["iceberg_bytes_per_partition"] < 5_000


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.5, 51), (0.99, 100), (1.0, 100)])
def test_a_quantile_is_one_of_the_values(share: float, expected: float) -> None:
    assert quantile([float(n) for n in range(100, 0, -1)], share) == expected
