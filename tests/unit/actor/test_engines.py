"""An actor has one engine per format, finds that of a job, and claims only what they can do."""

import pytest

from actor.engines import EngineSet
from actor.ports import EngineDeath
from shared.errors import InvalidInput, RetryableError
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
