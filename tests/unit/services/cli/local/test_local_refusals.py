"""A run on the spot goes on past groups that the engine refuses, and names the first refusal."""

import pytest

from services.cli.local.plan import LocalPlan
from services.cli.local.run import LocalRun, LocalRunner, RunListener
from shared.errors import RefusedFiles
from shared.jobs.payload import RewriteKind
from shared.layout.planner import plan
from shared.policy.policy import MIB, Policy
from shared.refusals import RefusalReason
from shared.table import PartitionKey
from tests.support.memory_engine import MemoryEngine

POLICY = Policy(target_bytes=8 * MIB)
FIRST, SECOND = PartitionKey('{"dt":"1"}'), PartitionKey('{"dt":"2"}')


@pytest.mark.parametrize("is_raised", [False, True])
def test_the_groups_after_a_refused_one_are_written(is_raised: bool) -> None:
    engine = MemoryEngine()
    for partition in (FIRST, SECOND):
        engine.append([100_000] * 8, partition)
    if is_raised:
        engine.broken[FIRST] = RefusedFiles("no ids", reason=RefusalReason.COLUMNS_UNCLEAR)
    else:
        engine.refuses = lambda file: file.partition == FIRST
    plans = tuple(
        plan(one, [file for file in engine.files.values() if file.partition == one], POLICY) for one in (FIRST, SECOND)
    )
    total = plans[0].before + plans[1].before
    made = LocalPlan("memory://t", 0, RewriteKind.LEVELS, (), POLICY, plans, 2, total, total, {}, ())
    run = LocalRun("j")
    LocalRunner(made, engine, RunListener(stopping=lambda: False), run).go()
    assert (run.landed, run.refused, run.skipped, run.failure) == (1, 1, 0, None)
    assert run.describe()["groups_refused"] == 1
    assert run.describe()["refusal"] == ("no ids" if is_raised else "a type that cannot be stored")
