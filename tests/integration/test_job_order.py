"""The order of jobs: by benefit per cost, or first the table that was rewritten longest ago."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from shared.layout.commit_metadata import CommitMetadata
from shared.policy.policy import JobOrder
from shared.queue.limits import MAX_PRIORITY
from shared.table import CommitOrigin
from tests.support.live_decider import POLICY, LiveDecider, WrittenTable, decider_settings

pytestmark = pytest.mark.redis


def named(table_id: str) -> str:
    return next(name for name in ("fresh", "never") if f"-{name}-" in table_id)


def rewrite(table: WrittenTable) -> None:
    """Compact the table as Lakewright does: deltalake commits, and the mark is laid into its commit."""
    delta = DeltaTable(str(table.path))
    delta.optimize.compact()
    commit = table.path / "_delta_log" / f"{delta.version():020d}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["userMetadata"] = CommitMetadata(CommitOrigin("t.1.compact", 1)).encode()
    commit.write_text("\n".join(json.dumps(line) for line in lines))


@pytest.fixture
def decider_of(redis_url: str, request: pytest.FixtureRequest) -> Iterator[LiveDecider]:
    """The decider of a group in this order."""
    with LiveDecider(decider_settings(redis_url, policy=replace(POLICY, job_order=request.param))) as live:
        yield live


@pytest.mark.parametrize("decider_of", list(JobOrder), indirect=True)
def test_in_the_balanced_order_the_table_rewritten_longest_ago_goes_first(
    decider_of: LiveDecider, tmp_path: Path
) -> None:
    """One table has many files and was rewritten a moment ago, the other few and never."""
    decider, order = decider_of, decider_of.settings.tracking.policy.job_order
    fresh, never = (WrittenTable(tmp_path / name, days=("2026-01-01",)) for name in ("fresh", "never"))
    fresh.append(8)
    rewrite(fresh)
    fresh.append(40)
    never.append(6)
    for name, table in (("fresh", fresh), ("never", never)):
        decider.register(table.path, name)
    # The first sight of a table does not know of rewrites before it, and a job keeps the best of its requests' steps.
    rewrite(fresh)
    decider.sweep()
    for job in decider.get("/v1/jobs")["jobs"]:
        decider.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    fresh.append(40)
    never.append()
    decider.sweep()
    steps = {named(job["table"]): job["priority"] for job in decider.get("/v1/jobs")["jobs"]}
    claims = [named(claim["table"]) for claim in decider.get("/v1/queue")["next"]]
    if order is JobOrder.BALANCED:
        assert steps["never"] == 0
        assert steps["fresh"] == MAX_PRIORITY
        assert claims == ["never", "fresh"]
    else:
        assert claims == ["fresh", "never"]
