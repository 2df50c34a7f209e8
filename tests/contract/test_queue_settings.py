"""One behaviour for both executors: what is set is set and nothing else, and what a run refused is remembered."""

import pytest

from shared.errors import InvalidInput
from shared.queue import commands, keys, queries
from shared.queue.model import Band, RefusalsChange
from tests.support.queue_bench import QUEUE, Bench, repaired_by, spec

pytestmark = pytest.mark.redis


def written(bench: Bench) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in bench.client.hgetall(keys.config(QUEUE)).items()}


def test_only_what_is_given_is_written(bench: Bench) -> None:
    before = written(bench)
    bench.run(commands.configure(QUEUE, {"aging_ms": 5_000, "strict_in_row": 3}))
    assert written(bench) == before | {"aging_ms": "5000", "strict_in_row": "3"}


@pytest.mark.parametrize(("there", "then"), [(None, "2"), ("1", "2"), ("2", "2"), ("3", "3")])
def test_a_schema_is_raised_and_never_lowered(bench: Bench, there: str | None, then: str) -> None:
    bench.client.delete(keys.config(QUEUE))
    if there is not None:
        bench.client.hset(keys.config(QUEUE), "schema", there)
    bench.run(commands.configure(QUEUE, {}))
    assert written(bench) == {"schema": then}
    bench.run(commands.configure(QUEUE, {"slots": 4}))
    assert written(bench) == {"schema": then, "slots": "4"}


@pytest.mark.parametrize("given", [{"backoff_base_ms": 900_001}, {"backoff_cap_ms": 9_999, "max_attempts": 5}])
def test_a_base_above_the_cap_is_refused_and_nothing_is_written(bench: Bench, given: dict[str, int]) -> None:
    before = written(bench)
    with pytest.raises(InvalidInput, match="above its cap") as refused:
        bench.run(commands.configure(QUEUE, given))
    assert refused.value.field == "backoff_base_ms"
    assert written(bench) == before


def test_base_and_cap_may_both_move_beyond_where_either_was(bench: Bench) -> None:
    bench.run(commands.configure(QUEUE, {"backoff_base_ms": 1_000_000, "backoff_cap_ms": 2_000_000}))
    assert written(bench)["backoff_base_ms"] == "1000000"


def wait_in(bench: Bench, band: Band, count: int) -> None:
    for number in range(count):
        bench.enqueue(spec(partition=f"{band} {number}", band=band))


def test_a_band_that_is_strict_no_longer_shares_from_then_on_and_takes_nothing_for_what_was(bench: Bench) -> None:
    """Two bands that wait throughout: first by rank, then half of the claims each, then by rank again."""
    bench.run(commands.configure(QUEUE, {"strict_in_row": 4}))
    wait_in(bench, Band.URGENT, 90)
    wait_in(bench, Band.LOW, 40)
    assert urgent(bench, 30) == 24
    bench.run(commands.configure(QUEUE, {"strict_bands": 0}))
    assert 9 <= urgent(bench, 20) <= 11
    assert 9 <= urgent(bench, 20) <= 11
    bench.run(commands.configure(QUEUE, {"strict_bands": 1, "strict_in_row": 1_000}))
    assert urgent(bench, 20) == 20
    assert sum(repaired_by(bench, QUEUE, bench.client)) == 0


def urgent(bench: Bench, count: int) -> int:
    """How many of the next claims are of the urgent band; they are the ones that were foreseen."""
    foreseen = [one.id for one in bench.run(queries.order(QUEUE, claims=10))]
    served = [claim for _ in range(count // 10) for claim in bench.claim(slots=10)]
    assert [claim.id for claim in served[:10]] == foreseen
    return sum(claim.band is Band.URGENT for claim in served)


def test_what_waits_is_moved_to_another_ageing_interval_by_the_next_audit(bench: Bench) -> None:
    bench.enqueue(spec(partition="later, better", priority=0))
    bench.clock.advance(-100_000)
    bench.enqueue(spec(partition="earlier, worse", priority=5))
    bench.clock.advance(100_000)
    assert bench.run(queries.order(QUEUE))[0].priority == 0
    bench.run(commands.configure(QUEUE, {"aging_ms": 1_000}))
    assert sum(repaired_by(bench, QUEUE, bench.client)) == 1, "at priority 0 nothing is to be moved"
    assert bench.run(queries.order(QUEUE))[0].priority == 5


TABLE = spec().key.table


def stored(bench: Bench) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in bench.client.hgetall(keys.refusals(QUEUE, TABLE)).items()}


def refusing(bench: Bench) -> dict[bytes, bytes]:
    return dict(bench.client.hgetall(keys.refusing_tables(QUEUE)))


def refuse(bench: Bench, text: str | None, partition: str = "{}") -> str:
    """Run a job of a partition to its end, and return what its claim had."""
    bench.enqueue(spec(partition=partition))
    (claim,) = bench.claim()
    bench.finish(claim, refusals=text)
    return claim.refusals


def test_the_next_claim_of_a_partition_has_what_the_last_run_remembered(bench: Bench) -> None:
    bench.ingest(-1, 0)
    assert refuse(bench, "one") == ""
    assert refuse(bench, None) == "one"
    assert refuse(bench, "two", partition="other") == ""
    assert (stored(bench), refusing(bench)) == ({"{}": "one", "other": "two"}, {TABLE.encode(): b"2"})
    assert refuse(bench, "") == "one"
    assert (stored(bench), refusing(bench)) == ({"other": "two"}, {TABLE.encode(): b"1"})
    bench.run(commands.forget_refusals(QUEUE, TABLE, ["other", "unknown"]))
    assert (stored(bench), refusing(bench)) == ({}, {})


def test_the_end_of_a_run_remembers_nothing_of_a_table_that_was_forgotten(bench: Bench) -> None:
    refuse(bench, "one")
    assert (stored(bench), refusing(bench)) == ({}, {})


def test_a_decider_does_not_overwrite_what_an_actor_has_refused_meanwhile(bench: Bench) -> None:
    bench.ingest(-1, 0)
    refuse(bench, "one")
    late = bench.ingest(0, 1, refusals=[RefusalsChange("{}", "", "")])
    assert (late.applied, late.version, stored(bench)) == (False, 0, {"{}": "one"})
    again = bench.ingest(0, 1, refusals=[RefusalsChange("{}", "one", "less")])
    assert (again.applied, again.version, stored(bench)) == (True, 1, {"{}": "less"})
    assert bench.ingest(1, 2, refusals=[RefusalsChange("{}", "less", "")], reset=True).applied
    assert (stored(bench), refusing(bench)) == ({}, {})
