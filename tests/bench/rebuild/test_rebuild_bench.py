"""The benchmark of rebuilds runs at a tiny size, so that it works on the day someone needs it."""

import json
import sys
from pathlib import Path

import pytest

from tests.bench.rebuild import __main__ as bench

pytestmark = [pytest.mark.redis, pytest.mark.e2e]

TINY = "--files 1200 --partitions 5 --rounds 1 --per-s 80 --seconds 0.5"


@pytest.mark.long("contracts")
def test_every_figure_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "rebuild.json"
    monkeypatch.setattr(sys, "argv", ["rebuild", *TINY.split(), "--json", str(kept)])
    bench.main()
    figures = json.loads(kept.read_text())
    for name in ("columns_cpu_s", "one-by-one_cpu_s", "deltalake_cpu_s", "rebuild_s", "decider_peak_mib"):
        assert figures[name] > 0, name
    assert 0 < figures["others_p50_ms_idle"] <= figures["others_p99_ms_idle"]
    assert figures["rebuilds"] >= 2
