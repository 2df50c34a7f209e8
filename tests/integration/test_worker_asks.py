"""What a job may request besides levels: idle compaction, full rewrites; and what a run teaches."""

from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import pytest
import redis

from actor.ports import Control, RewriteOutcome, RewriteRequest
from decider.decide.calibration import Calibration
from shared.jobs.payload import JobPayload, RewriteKind
from shared.layout.partition_stats import IDLE_COMPACTED_TAG
from shared.policy.policy import MIB
from shared.queue import commands
from shared.queue.model import JobState
from tests.support.memory_engine import MemoryEngine
from tests.support.worker_bench import EIGHT, Bench, counters, spec

pytestmark = pytest.mark.redis


def test_a_job_to_settle_merges_what_levels_leave_and_says_so_and_never_twice(redis_url: str) -> None:
    made = Bench(redis_url, MemoryEngine([MIB, MIB, 100]))
    payload = JobPayload.decode(spec(1).payload)
    try:
        worker = made.worker()
        for version, expected in ((1, [2 * MIB + 100]), (2, [2 * MIB + 100])):
            settle = replace(spec(version), payload=replace(payload, rewrite_kind=RewriteKind.IDLE).encode())
            made.queue.run(commands.enqueue("default", settle))
            assert worker.run_next()
            assert [file.size_bytes for file in made.engine.files.values()] == expected
            assert all(IDLE_COMPACTED_TAG in file.tags for file in made.engine.files.values())
        assert [run.run_result for run in made.runs()] == ["done", "done"]
        assert counters(made)["plans_empty"] == 1
    finally:
        made.close()


def test_a_full_rewrite_is_done_although_a_newer_commit_asked_for_less_and_teaches_nothing_of_that(
    redis_url: str,
) -> None:
    with closing(Bench(redis_url, MemoryEngine([9 * MIB, 5 * MIB, 5 * MIB, MIB, 100]))) as made:
        full = replace(
            spec(1),
            payload=replace(JobPayload.decode(spec(1).payload), rewrite_kind=RewriteKind.FULL).encode(),
            extent=1,
        )
        made.queue.run(commands.enqueue("default", full))
        made.enqueue(2)
        made.engine.version = 2
        assert made.worker().run_next()
        assert sum(file.size_bytes < 6 * MIB for file in made.engine.files.values()) <= 1
        assert made.state() is None
        assert not redis.Redis.from_url(made.url).exists("{lw:default}:meas:t-1")


class Shrinking(MemoryEngine):
    """Outputs are half as large as their inputs."""

    share = Fraction(1, 2)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        outcome = super().rewrite(request, control)
        groups = []
        for group in outcome.groups:
            small = tuple(replace(file, size_bytes=int(file.size_bytes * self.share)) for file in group.outputs)
            self.files |= {file.path: file for file in small}
            groups.append(replace(group, outputs=small))
        return replace(outcome, groups=tuple(groups))


def test_a_run_reports_how_much_outputs_shrank_and_which_missed_their_level(redis_url: str) -> None:
    engine = Shrinking([200_000] * 8)
    with closing(Bench(redis_url, engine)) as made:
        made.enqueue(1)
        assert made.worker().run_next()
        # Eight files of 200 kB are of level 4, and half of their sum lies below the 1 MiB of level 5.
        assert counters(made) | {"groups_not_promoted": 1, "levels_not_reached": 1} == counters(made)
        raw = redis.Redis.from_url(made.url).hgetall("{lw:default}:meas:t-1")
        sums = Calibration.of({name.decode(): int(value) for name, value in raw.items()})
        assert sums == Calibration(1, 0, 1_600_000, 0, 7, 1_600_000, 800_000)


def test_sums_forget_what_is_long_ago_and_a_run_that_found_nothing_teaches_nothing(redis_url: str) -> None:
    engine = MemoryEngine()
    made = Bench(redis_url, engine)
    worker = made.worker()
    try:
        for run in range(80):
            made.enqueue(engine.append([100_000 if run < 64 else 50_000] * 8))
            assert worker.run_next()
            for path in list(engine.files):
                engine.remove(path)
            made.enqueue(engine.version)
            assert worker.run_next()
        raw = redis.Redis.from_url(made.url).hgetall("{lw:default}:meas:t-1")
        sums = Calibration.of({name.decode(): int(value) for name, value in raw.items()})
        assert sums.runs == 32 + 16
        assert sums.measured_bytes == 32 * 800_000 + 16 * 400_000
    finally:
        made.close()


OFF = {"lakewright.enabled": "false"}


def test_a_table_that_is_switched_off_between_two_rounds_keeps_what_landed_and_loses_no_request(redis_url: str) -> None:
    """What arrived while the job ran is the decider's word about a newer version; it is not taken back here."""
    made = Bench(redis_url, MemoryEngine(EIGHT))

    def switch_off() -> None:
        made.engine.configuration = OFF
        made.enqueue(made.engine.append(EIGHT))

    made.engine.after_commit = switch_off
    try:
        made.enqueue(1)
        worker = made.worker()
        assert worker.run_next()
        assert len(made.engine.files) == 1 + len(EIGHT)
        assert made.state() is JobState.QUEUED
    finally:
        made.close()
