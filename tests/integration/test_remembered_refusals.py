"""A refusal by an actor is remembered: one attempt and one message, and the other files go on being compacted."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from decider.optimize.on_demand import OnDemandOptimizer, OptimizeCommand
from decider.optimize.run_terms import RunTerms
from decider.store.tables.cleanup import delete_table
from decider.tracking import table_tracking
from shared import partition_refusals
from shared.errors import Difference
from shared.jobs.payload import DEDUPLICATE
from shared.partitions import WHOLE_TABLE
from shared.queue import keys
from shared.refusals import RefusalReason
from tests.support.refusal_world import BAD, RefusalWorld, in_refusal_world
from tests.support.timed_world import TABLE

pytestmark = pytest.mark.redis

DAY_MS = 86_400_000


def test_over_fifty_batches_a_refused_file_costs_one_attempt_and_the_others_are_compacted(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(good=7, bad=1)
        await world.run_jobs()
        assert world.attempts == 1
        for _ in range(50):
            await world.commit(good=8)
            await world.run_jobs()
        assert world.attempts == 1
        (known,) = world.remembered().refusals
        assert (known.reason, known.count) == (RefusalReason.TYPES, 1)
        assert world.good_files() < 20
        runs = world.redis.xlen(keys.runs("default"))
        assert world.redis.hget(keys.counters("default"), "plans_empty") is None
        assert runs <= 60

    in_refusal_world(redis_url, story)


async def _of_removal(world: RefusalWorld) -> None:
    await world.remove([next(file for path, file in world.engine.files.items() if path.startswith(BAD))])


async def _of_schema(world: RefusalWorld) -> None:
    await world.alter(schema="another")


async def _of_properties(world: RefusalWorld) -> None:
    await world.alter(**{"write.parquet.compression-codec": "zstd"})


async def _of_release(world: RefusalWorld) -> None:
    await world.world.new_decider().follow()


LIFTS: dict[str, Callable[[RefusalWorld], Coroutine[Any, Any, None]]] = {
    "files": _of_removal,
    "schema": _of_schema,
    "properties": _of_properties,
    "release": _of_release,
}


@pytest.mark.parametrize("event", LIFTS)
def test_each_of_four_changes_lifts_a_refusal_even_if_no_commit_touches_the_partition(
    redis_url: str, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=16)
        await world.run_jobs()
        before = world.attempts
        await world.commit(good=1)
        assert await world.run_jobs() == 0
        assert world.attempts == before
        if event == "release":
            for module in (table_tracking, partition_refusals):
                monkeypatch.setattr(module, "RELEASE", "9.0.0")
        world.engine.refuses = lambda _: False
        await LIFTS[event](world)
        assert await world.run_jobs() == 1
        assert not any(path.startswith(BAD) for path in world.engine.files)
        assert world.remembered().refusals == ()
        assert world.redis.hlen(keys.refusing_tables("default")) == 0

    in_refusal_world(redis_url, story)


def test_a_writer_of_nothing_but_refused_files_gets_fewer_and_fewer_attempts(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        for _ in range(100):
            await world.commit(bad=8)
            await world.run_jobs()
        assert world.attempts <= 10
        assert world.remembered().futile_runs <= 6

    in_refusal_world(redis_url, story)


def test_force_gives_refused_files_another_attempt_and_a_plain_request_does_not(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=8)
        await world.run_jobs()
        assert world.attempts == 1
        requests = OnDemandOptimizer(
            world.world.queue,
            world.world.decider.follower,
            lambda _: world.world.log,
            lambda: world.world.now_ms,
        )
        answer = await requests.optimize(TABLE, OptimizeCommand())
        assert answer.jobs == ()
        assert [str(reason) for reason in answer.reasons] == ["refused_files"]
        assert not (await requests.dry_run(TABLE, OptimizeCommand())).plans
        force = OptimizeCommand(terms=RunTerms(force=True))
        assert len((await requests.dry_run(TABLE, force)).plans) == 1
        assert len((await requests.optimize(TABLE, force)).jobs) == 1
        assert await world.run_jobs() == 1
        assert world.attempts == 2
        assert len(world.remembered().refusals) == 1

    in_refusal_world(redis_url, story)


def test_a_second_decider_and_a_rebuild_see_the_same_refusals(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=8)
        await world.run_jobs()
        await world.commit(good=2, follow=False)
        await world.world.new_decider().follow()
        await world.alter(**{"lakewright.tolerance": "0.2"})
        world.engine.attempts.clear()
        await world.run_jobs()
        before = world.attempts
        world.redis.hdel(keys.table_state("default", TABLE.id), "version")
        world.redis.delete(keys.table_state("default", TABLE.id))
        await world.world.new_decider().follow()
        assert await world.run_jobs() == 0
        assert world.attempts == before

    in_refusal_world(redis_url, story)


def test_what_is_lost_with_redis_is_remembered_again_by_one_attempt(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=8)
        await world.run_jobs()
        world.redis.delete(keys.refusals("default", TABLE.id), keys.refusing_tables("default"))
        await world.commit(good=1)
        await world.run_jobs()
        await world.commit(good=1)
        assert await world.run_jobs() == 0
        assert world.attempts == 2

    in_refusal_world(redis_url, story)


def test_an_unregistered_table_leaves_no_refusals(redis_url: str) -> None:
    async def story(world: RefusalWorld) -> None:
        await world.commit(bad=8)
        await world.run_jobs()
        assert world.redis.hgetall(keys.refusing_tables("default")) == {TABLE.id: "1"}
        await delete_table(world.world.queue, TABLE.id, kinds=("compact",))
        assert not world.redis.exists(keys.refusing_tables("default"), keys.refusals("default", TABLE.id))

    in_refusal_world(redis_url, story)


def test_a_job_on_the_whole_table_that_is_refused_is_not_tried_again_for_every_commit(redis_url: str) -> None:
    attempts: list[int] = []

    async def story(world: RefusalWorld) -> None:
        def differ(*_: object) -> None:
            attempts.append(world.engine.version)
            raise Difference("column v differs; nothing was committed")

        world.engine.table_kinds = (DEDUPLICATE,)
        world.engine.run_table_job = differ  # type: ignore[method-assign,assignment]
        for _ in range(30):
            await world.commit(good=1)
            await world.world.decider.tick()
            await world.run_jobs()
            world.world.now_ms += DAY_MS
            assert len(attempts) <= 3
        (known,) = world.remembered(WHOLE_TABLE).jobs
        assert (known.kind, known.reason, known.runs) == (DEDUPLICATE, RefusalReason.DIFFERENCE, len(attempts))
        await world.alter(**{"lakewright.deduplicate-every": "2h"})
        await world.world.decider.tick()
        await world.run_jobs()
        assert len(attempts) == known.runs + 1 == 4
        assert world.remembered(WHOLE_TABLE).jobs[0].runs == 1

    keyed = {"lakewright.primary-key": "id", "lakewright.sequence-by": "ts"}
    in_refusal_world(redis_url, story, keyed)
