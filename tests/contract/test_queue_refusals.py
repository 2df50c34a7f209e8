"""What the queue keeps of refused files: the end of a run writes it, a claim has it, a commit changes it."""

import pytest

from shared.queue import commands, keys
from shared.queue.model import RefusalsChange
from tests.support.queue_bench import QUEUE, Bench, spec

pytestmark = pytest.mark.redis

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
