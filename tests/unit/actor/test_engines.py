"""An actor has one engine per format, finds that of a job, and claims only what they can do."""

import pytest

from actor.engines import RUNNABLE_KINDS, EngineSet
from actor.formats.delta.engine import DeltaEngine
from actor.formats.iceberg.engine import IcebergEngine
from actor.ports import EngineDeath, TableEngine
from decider.decide.actions import ACTIONS
from decider.state.format_limits import limit
from shared.errors import InvalidInput, RetryableError
from shared.formats.registry import support_of
from shared.policy.policy import Policy
from tests.support.memory_engine import MemoryEngine


class OtherEngine(MemoryEngine):
    """An engine of another format."""

    format = "other"


@pytest.mark.parametrize("engines", [[], [MemoryEngine(), MemoryEngine()]])
def test_engines_of_no_format_or_twice_of_one_are_refused(engines: list[MemoryEngine]) -> None:
    with pytest.raises(InvalidInput, match="each with a format of its own"):
        EngineSet(engines)


def test_a_job_finds_the_engine_of_its_format_and_one_without_a_format_the_only_engine() -> None:
    delta, other = MemoryEngine(), OtherEngine()
    both = EngineSet([delta, other])
    assert both.abilities == ("delta/compact", "delta/sort", "other/compact", "other/sort")
    assert (both.of("delta"), both.of("other"), EngineSet([delta]).of("")) == (delta, other, delta)
    for unknown in ("iceberg", ""):
        with pytest.raises(RetryableError, match="here are: delta, other"):
            both.of(unknown)


def test_an_actor_announces_only_what_is_planned_for_a_format() -> None:
    """An Iceberg rewrite sorts nothing: an ability that no decision uses misleads who reads the list of actors."""

    class IcebergLike(MemoryEngine):
        format = "iceberg"
        table_kinds = ("vacuum", "checkpoint")

    announced = EngineSet([MemoryEngine(), IcebergLike()]).abilities
    assert announced == ("delta/compact", "delta/sort", "iceberg/compact", "iceberg/vacuum")


def test_a_job_is_cancelled_whichever_engine_runs_it() -> None:
    engines = [MemoryEngine(), OtherEngine()]
    EngineSet(engines).cancel("j-1")
    assert all(engine.cancelled.is_set() for engine in engines)


def test_engines_die_together_and_one_that_cannot_be_ended_has_no_cause() -> None:
    delta, other = MemoryEngine(), OtherEngine()
    both = EngineSet([delta, other])
    assert both.is_alive()
    other.alive, other.death = False, EngineDeath("killed")
    assert not both.is_alive()
    assert both.bury() == EngineDeath("killed")
    other.death = None
    assert both.bury() is None


pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")


@pytest.mark.parametrize("engine", [DeltaEngine, IcebergEngine])
def test_the_decider_plans_exactly_the_kinds_on_whole_tables_that_the_engine_runs(engine: type[TableEngine]) -> None:
    support = support_of(engine.format)
    policy, _ = limit(Policy(), support, {})
    planned = [kind for kind in ACTIONS.table_kinds if policy.runs(kind) and kind not in support.lacks]
    assert sorted(planned) == sorted(engine.table_kinds)
    assert {kind for kind in ACTIONS.partition_kinds if policy.runs(kind)} <= {*RUNNABLE_KINDS}


@pytest.mark.parametrize("engine", [DeltaEngine, IcebergEngine])
def test_an_owner_reads_what_to_do_instead_of_each_kind_that_is_not_run(engine: type[TableEngine]) -> None:
    support = support_of(engine.format)
    policy, _ = limit(Policy(), support, {})
    assert {kind for kind in ACTIONS.table_kinds if not policy.runs(kind)} == {*support.instead}
    assert support.title
