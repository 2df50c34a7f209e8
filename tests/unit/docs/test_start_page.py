"""The worked example of docs/start.md has the numbers that the code computes for it, and the code's defaults."""

import math
from pathlib import Path

from shared.jobs.payload import RewriteKind
from shared.layout.eligibility import evaluate_layout
from shared.layout.partition_stats import stats_of_sizes
from shared.layout.planner import plan_rewrite
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.policy.property_table import PROPERTIES
from shared.table import DataFile

PAGE = " ".join((Path(__file__).resolve().parents[3] / "docs" / "start.md").read_text(encoding="utf-8").split())
MIB = 1 << 20
POLICY = Policy()


def test_the_decisions_of_the_example_are_those_of_the_code() -> None:
    for files in range(1, 9):
        stats = stats_of_sizes(POLICY.size_levels, [MIB] * files)
        reason = evaluate_layout(stats, POLICY).reason
        row = f"| {files} | {files} | {stats.excess(POLICY.target_bytes) / MIB**2 / files:,.0f} MiB² | "
        start = PAGE.find(row)
        assert (start >= 0) is (files in (1, 2, 7, 8)), row
        assert start < 0 or f"`{reason}`" in PAGE[start : start + 90]


def test_the_end_of_the_example_is_what_the_planner_leaves() -> None:
    files: list[DataFile] = []
    rewritten = jobs = most = 0
    for commit in range(1, 129):
        files.append(DataFile(f"{commit}", MIB, WHOLE_TABLE))
        most = max(most, len(files))
        for group in plan_rewrite(RewriteKind.LEVELS, WHOLE_TABLE, files, POLICY).groups:
            size = sum(file.size_bytes for file in group.files)
            rewritten += size
            jobs += 1
            gone = {file.path for file in group.files}
            files = [*(file for file in files if file.path not in gone), DataFile(f"to {commit}", size, WHOLE_TABLE)]
    assert [file.size_bytes for file in files] == [128 * MIB]
    figures = f"{jobs} jobs, at most {most} files at any time instead of 128, and {rewritten // MIB} MiB rewritten"
    assert figures in PAGE
    assert f"{rewritten / (128 * MIB):.1f} bytes per byte" in PAGE


def test_the_plan_of_a_large_table_is_that_of_the_planner() -> None:
    """A hundredth of the table: each output takes what fills it, so the number of groups follows from the bytes."""
    plan = plan_rewrite(
        RewriteKind.LEVELS, WHOLE_TABLE, [DataFile(f"{number}", MIB, WHOLE_TABLE) for number in range(1_000)], POLICY
    )
    assert (len(plan.groups), sum(len(group.files) for group in plan.groups)) == (math.ceil(1_000 / 128), 1_000)
    groups = math.ceil(100_000 / 128)
    assert f"100,000 replaced in {groups} groups" in PAGE
    assert f"some {math.ceil(groups / 8)} commits" in PAGE


def test_the_five_properties_have_the_defaults_of_the_code() -> None:
    table = PAGE.partition("## The five properties to set first")[2].partition("## ")[0]
    named = [one for one in PROPERTIES if f"| `lakewright.{one.name}` | " in table]
    assert len(named) == 5
    for one in named:
        shown = table.partition(f"| `lakewright.{one.name}` | ")[2].partition(" | ")[0].strip("`")
        assert shown.replace("mb", " MiB") == one.default, one.name
