"""What the benchmark of rules stands on, without Spark: the trace, the played table, and how it is told."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from deltalake import DeltaTable

from tests.bench.delta.trace import MERGE_COMMITS, Trace, days, make_trace

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from shared.queue import keys
from shared.table import TableId
from tests.bench.delta.__main__ import HOURLY, limits, picture, table
from tests.bench.delta.ours import QUEUE, Lakewright
from tests.bench.delta.playing import Played, _inside_s
from tests.bench.delta.rules import TARGET_BYTES, DeltaRs
from tests.bench.delta.table import PlayedTable
from tests.bench.limits import exit_code
from tests.support.memory_engine import MemoryEngine

COMMITS = 48


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return make_trace(tmp_path_factory.mktemp("trace"), commits=COMMITS, seed=7)


def played_on(path: Path, trace: Trace) -> PlayedTable:
    made = PlayedTable(path, {})
    for commit in trace.commits:
        made.bring(trace.folder, commit.adds)
        made.commit([{"add": add} for add in commit.adds])
    return made


def ids(path: Path) -> list[int]:
    return sorted(DeltaTable(str(path)).to_pyarrow_table(columns=["id"]).column("id").to_pylist())


def test_a_seed_says_the_whole_trace(trace: Trace, tmp_path: Path) -> None:
    again = make_trace(tmp_path, commits=COMMITS, seed=7)
    assert again.commits == trace.commits
    assert make_trace(tmp_path / "other", commits=COMMITS, seed=8).commits != trace.commits


def test_late_data_comes_and_no_append_meets_a_merge(trace: Trace) -> None:
    first = {add["partitionValues"]["day"] for commit in trace.commits[:4] for add in commit.adds}
    assert first < set(days())
    assert any(len({add["partitionValues"]["day"] for add in commit.adds}) > 1 for commit in trace.commits)
    merges = [(number, commit.merge_day) for number, commit in enumerate(trace.commits) if commit.merge_day]
    assert merges
    for number, day in merges:
        meanwhile = trace.commits[number : number + MERGE_COMMITS]
        assert day not in {add["partitionValues"]["day"] for commit in meanwhile for add in commit.adds}


def test_the_played_table_holds_the_traces_rows_and_counts_its_files(trace: Trace, tmp_path: Path) -> None:
    made = played_on(tmp_path / "t", trace)
    assert (made.files, made.live_bytes, made.bytes_rewritten) == (trace.files, trace.bytes, 0)
    assert ids(made.path) == list(range(trace.rows))


def test_a_compaction_by_others_is_read_from_the_log(trace: Trace, tmp_path: Path) -> None:
    made = played_on(tmp_path / "t", trace)
    rule = DeltaRs(None)  # type: ignore[arg-type]
    rule.begin(made)
    rule.after(59)
    made.follow()
    assert made.rewrites == 0
    rule.after(60)
    made.follow()
    assert made.files == len(DeltaTable(str(made.path)).file_uris()) < trace.files
    assert made.rewrites > 0
    assert made.bytes_rewritten > trace.bytes / 2
    assert trace.bytes / trace.files < TARGET_BYTES
    assert ids(made.path) == list(range(trace.rows))


@pytest.mark.redis
def test_our_side_follows_the_trace_two_commits_behind(trace: Trace, tmp_path: Path) -> None:
    made = PlayedTable(tmp_path / "t", {})
    rule = Lakewright(None, MemoryEngine([]))  # type: ignore[arg-type]  # Too few files for a job: nothing is read.
    rule.begin(made)
    try:
        for number, commit in enumerate(trace.commits[:3], 1):
            made.bring(trace.folder, commit.adds)
            made.commit([{"add": add} for add in commit.adds])
            rule.look()
            rule.after(number)
        with rule.services.redis.client() as client:
            assert client.hget(keys.table_state(QUEUE, TableId("bench")), "version") == b"1"
        head, *parts = rule.parts()
        assert "1 looks" in head
        assert any("decider" in part for part in parts)
    finally:
        rule.end()


def test_compaction_inside_of_commits_costs_what_they_cost_more_than_others() -> None:
    assert _inside_s([(1.0, False), (3.0, True), (1.5, False), (0.5, False), (4.0, True)]) == pytest.approx(5.0)
    assert _inside_s([]) == 0


def test_figures_are_reported_as_a_table_and_a_picture(trace: Trace) -> None:
    queries = {"point": 1.0, "range": 2.0, "full": 3.0}
    done = [
        Played(f"rule {n}", n * 10**6, n, 1.5, 9.0, 4, n, 5, 6, queries, [3, 4, 5], (), [9, n, 2], 1, 1, [8.5, 0.2])
        for n in range(3)
    ]
    text = table(trace, done)
    assert "9 / 1 / 2, 2" in text
    assert "| rule 2 | 2.0 MB |" in text
    assert "2 of 4" in text
    assert "| 8.5 / 0.2 |" in text
    root: Any = ET.fromstring(picture(done))  # noqa: S314 - our own text
    assert len(root.findall(".//{http://www.w3.org/2000/svg}polyline")) == 3
    assert json.dumps(text)


def test_limits_are_met_or_not_by_ours_beside_an_hourly_optimize(trace: Trace) -> None:
    ours = Played(Lakewright.title, curve=[140], cpu_s_by_round=[9.0, 4.0, 3.0])
    hourly = Played(HOURLY, cpu_s_by_round=[9.0, 12.0, 10.0])
    assert len(limits(trace, [ours, hourly])) == 5
    assert exit_code(limits(trace, [ours, hourly])) == 0
    for change in (
        {"curve": [141]}, {"bytes_rewritten": 2 * trace.bytes}, {"merges_aborted": 1},
        {"cpu_s_by_round": [9.1, 4.0, 3.0]}, {"cpu_s_by_round": [9.0, 4.0, 3.1]},
    ):  # fmt: skip
        missed = [one for one in limits(trace, [replace(ours, **change), hourly]) if not one.is_met]
        assert len(missed) == 1
    assert len(limits(trace, [ours])) == 3
    assert limits(trace, [hourly]) == []
