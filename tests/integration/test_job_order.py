"""The order of jobs, and the traces of requests that a job keeps through all that happens to it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis as redis_library
from deltalake import DeltaTable

from actor.queue_executor import SyncQueueExecutor, connect
from shared.layout.commit_metadata import CommitMetadata
from shared.policy.policy import JobOrder
from shared.queue import commands, keys
from shared.queue.limits import MAX_PRIORITY
from shared.queue.model import Claim, RunResult
from shared.table import CommitOrigin
from shared.tracing import MAX_CONTEXTS
from tests.support.live_decider import POLICY, LiveDecider, WrittenTable, decider_settings
from tests.support.queue_bench import end_of
from tests.support.queue_calls import spec

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


TRACES = [f"00-{1:032x}-{number:016x}-01" for number in range(12)]


class Jobs:
    """One job in a queue."""

    def __init__(self, redis_url: str) -> None:
        self.queue = SyncQueueExecutor(connect(redis_url), "default")
        self.redis = redis_library.Redis.from_url(redis_url, decode_responses=True)
        self.calls = 0

    def request(self, version: int, trace: str) -> None:
        self.queue.run(commands.enqueue("default", replace(spec(version=version), trace=trace)))

    def claim(self) -> Claim:
        self.calls += 1
        (found,) = self.queue.run(
            commands.claim("default", worker="w", nonce=f"c-{self.calls}", slots=1, lease_ms=60_000)
        )
        return found

    def finish(self, claim: Claim, result: RunResult, seen_version: int) -> None:
        self.queue.run(end_of(claim, result, seen_version=seen_version))

    def fields(self) -> dict[str, str]:
        found = self.redis.hgetall(keys.job("default", spec().id))
        return {name: value for name, value in found.items() if name.endswith("traces")}


@pytest.fixture
def jobs(redis_url: str) -> Jobs:
    return Jobs(redis_url)


def test_the_newest_requests_are_kept_and_a_repetition_changes_nothing(jobs: Jobs) -> None:
    for version, trace in enumerate(TRACES, start=1):
        jobs.request(version, trace)
    newest = TRACES[-MAX_CONTEXTS:]
    assert jobs.queue.traces(spec().id) == tuple(newest)
    jobs.request(12, TRACES[-3])
    assert jobs.fields() == {"traces": " ".join(newest)}


def test_a_request_during_a_run_is_the_next_runs_and_not_this_ones(jobs: Jobs) -> None:
    jobs.request(1, TRACES[1])
    held = jobs.claim()
    jobs.request(2, TRACES[2])
    assert jobs.queue.traces(held.id) == (TRACES[1],)
    jobs.finish(held, RunResult.DONE, seen_version=1)
    assert jobs.fields() == {"traces": TRACES[2]}


def test_a_run_that_is_repeated_keeps_its_traces_and_adds_those_that_came_meanwhile(jobs: Jobs) -> None:
    jobs.request(1, TRACES[1])
    held = jobs.claim()
    jobs.request(2, TRACES[2])
    jobs.finish(held, RunResult.YIELD, seen_version=1)
    assert jobs.fields() == {"traces": f"{TRACES[1]} {TRACES[2]}"}
    jobs.finish(jobs.claim(), RunResult.YIELD, seen_version=1)
    assert jobs.fields() == {"traces": f"{TRACES[1]} {TRACES[2]}"}


def test_a_rerun_without_a_trace_does_not_continue_the_trace_before_it(jobs: Jobs) -> None:
    jobs.request(1, TRACES[1])
    held = jobs.claim()
    jobs.request(2, "")
    jobs.finish(held, RunResult.DONE, seen_version=1)
    assert jobs.fields() == {}


def test_a_cancelled_request_leaves_no_trace(jobs: Jobs) -> None:
    jobs.request(1, TRACES[1])
    held = jobs.claim()
    jobs.request(2, TRACES[2])
    jobs.queue.run(commands.cancel("default", held.id, nonce="x"))
    jobs.request(3, TRACES[3])
    jobs.finish(held, RunResult.CANCELLED, seen_version=1)
    assert jobs.fields() == {"traces": TRACES[3]}


def test_jobs_without_traces_have_no_fields_for_them(jobs: Jobs) -> None:
    jobs.request(1, "")
    held = jobs.claim()
    jobs.request(2, "")
    jobs.finish(held, RunResult.YIELD, seen_version=1)
    assert jobs.fields() == {}
