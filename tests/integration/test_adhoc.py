"""Requests by people: what they lead to is queued and kept in the ledger in one step, purges included."""

from dataclasses import replace

import pytest

from decider.archive.ledger_reader import LedgerReader
from decider.optimize.on_demand import OnDemandOptimizer, OptimizeCommand
from decider.optimize.run_terms import RunTerms
from shared.jobs.payload import JobPayload
from shared.layout.eligibility import Reason
from shared.policy.policy import MIB
from shared.queue import commands, queries
from shared.queue.model import EnqueueOutcome
from shared.table import DataFile, RemovedFile, Snapshot, TableId, TableMetadata, TableRef
from tests.support.decisions import contradictions, recompute
from tests.support.timed_world import DT, TABLE, World, in_world, partition

pytestmark = pytest.mark.redis

ONE, TWO = partition(1), partition(2)


def on_demand(world: World) -> OnDemandOptimizer:
    return OnDemandOptimizer(world.queue, world.decider.follower, lambda _: world.log, lambda: 7)


async def test_a_request_sees_files_with_many_deleted_rows_and_reads_the_log_only_where_there_are_some(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    async with in_world(redis_url) as world:
        adhoc, log, snapshot = on_demand(world), world.log, world.log.snapshot

        async def counted() -> Snapshot:
            read.append("snapshot")
            return await snapshot()

        whole = DataFile("a", 9 * MIB, ONE, rows=100)
        log.add([whole, DataFile("b", 9 * MIB, TWO, rows=100)])
        nothing = await adhoc.optimize(TABLE, OptimizeCommand())
        assert nothing.jobs == ()
        # A commit that was folded long ago left the deleted rows behind; no one decides about it again.
        log.add([DataFile("a", 9 * MIB, ONE, "dv", rows=100, deleted_rows=60)], [RemovedFile("a", None, 9 * MIB, ONE)])
        await world.decider.follow()
        monkeypatch.setattr(log, "snapshot", counted)
        others = (await adhoc.optimize(TABLE, OptimizeCommand(partitions=({"dt": "2"},)))).jobs
        assert (others, read) == ((), []), "no vector there"
        for outcome in (EnqueueOutcome.MERGED, EnqueueOutcome.MERGED):
            (job,) = (await adhoc.optimize(TABLE, OptimizeCommand())).jobs
            assert (job.partition, job.outcome) == (ONE, outcome)
        assert len(read) == 2
        newest = (await LedgerReader(world.queue).newest(TABLE.id, limit=1))[0]
        assert (newest.reason, newest.outcome, newest.purgeable) == (Reason.REQUESTED, "merged", 1)
        assert recompute(newest) is newest.verdict
        assert contradictions(newest) == ()


@pytest.mark.parametrize("force", [False, True])
async def test_files_on_harmful_paths_are_rewritten_only_when_forced(redis_url: str, force: bool) -> None:
    async with in_world(redis_url) as world:
        world.log.add([DataFile("dt=a%20b/x", 9 * MIB, ONE, rows=100), DataFile("plain", 9 * MIB, TWO, rows=100)])
        asked = (await on_demand(world).optimize(TABLE, OptimizeCommand(terms=RunTerms(force=force)))).jobs
        assert [job.partition for job in asked] == ([ONE] if force else [])
        if force:
            newest = (await LedgerReader(world.queue).newest(TABLE.id, limit=1))[0]
            assert (newest.purgeable, contradictions(newest)) == (1, ())


async def test_only_what_is_forced_or_asked_of_a_table_that_is_off_runs_despite_the_switch(redis_url: str) -> None:
    async with in_world(redis_url) as world:
        adhoc, log = on_demand(world), world.log

        async def asked(table: TableRef, *, force: bool) -> bool:
            (job,) = (await adhoc.optimize(table, OptimizeCommand(terms=RunTerms(force=force)))).jobs
            view = await world.queue.run(queries.job("default", job.id))
            assert view is not None
            await world.queue.run(commands.cancel("default", job.id, nonce=f"{table.id}-{force}"))
            return JobPayload.decode(view.payload).even_if_disabled

        kept_on = replace(TABLE, id=TableId("t-2"), properties={"lakewright.enabled": "true"})
        log.add([DataFile(str(number), 100_000, ONE) for number in range(9)])
        assert not await asked(TABLE, force=False)
        assert await asked(TABLE, force=True)
        log.add(metadata=TableMetadata("u-1", DT, {"lakewright.enabled": "false"}), data_change=False)
        assert await asked(TABLE, force=True)
        # What was said at its registration is nearer than the table's own property.
        assert await asked(kept_on, force=False)
