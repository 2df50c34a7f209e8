"""One behaviour for both executors: what is set is set and nothing else, and no release lowers another's schema."""

import pytest

from shared.errors import InvalidInput
from shared.queue import keys, transitions
from tests.support.queue_bench import QUEUE, Bench

pytestmark = pytest.mark.redis


def written(bench: Bench) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in bench.client.hgetall(keys.cfg(QUEUE)).items()}


def test_only_what_is_given_is_written(bench: Bench) -> None:
    before = written(bench)
    bench.run(transitions.configure(QUEUE, {"aging_ms": 5_000, "strict_in_row": 3}))
    assert written(bench) == before | {"aging_ms": "5000", "strict_in_row": "3"}


@pytest.mark.parametrize(("there", "then"), [(None, "1"), ("0", "1"), ("1", "1"), ("2", "2")])
def test_a_schema_is_raised_and_never_lowered(bench: Bench, there: str | None, then: str) -> None:
    bench.client.delete(keys.cfg(QUEUE))
    if there is not None:
        bench.client.hset(keys.cfg(QUEUE), "schema", there)
    bench.run(transitions.configure(QUEUE, {}))
    assert written(bench) == {"schema": then}
    bench.run(transitions.configure(QUEUE, {"slots": 4}))
    assert written(bench) == {"schema": then, "slots": "4"}


@pytest.mark.parametrize("given", [{"backoff_base_ms": 900_001}, {"backoff_cap_ms": 9_999, "max_attempts": 5}])
def test_a_base_above_the_cap_is_refused_and_nothing_is_written(bench: Bench, given: dict[str, int]) -> None:
    before = written(bench)
    with pytest.raises(InvalidInput, match="above its cap") as refused:
        bench.run(transitions.configure(QUEUE, given))
    assert refused.value.field == "backoff_base_ms"
    assert written(bench) == before


def test_base_and_cap_may_both_move_beyond_where_either_was(bench: Bench) -> None:
    bench.run(transitions.configure(QUEUE, {"backoff_base_ms": 1_000_000, "backoff_cap_ms": 2_000_000}))
    assert written(bench)["backoff_base_ms"] == "1000000"
