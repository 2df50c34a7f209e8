"""The simulated lake: seeded, busy, and served in full by every order."""

import pytest

from tests.bench.fleet.queue_order import queue_order
from tests.bench.fleet.simulation import (
    BYTES_PER_S,
    FIXED_BYTES,
    HOURS,
    JOB_BYTES,
    ORDERS,
    InMemory,
    benefit,
    fair_tables,
    simulate,
)

TABLES, SLOTS = 100, 1


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_of_one_seed_has_one_result_and_saves_readers_something(name: str) -> None:
    nothing, _ = simulate(TABLES, 3, SLOTS, None)
    done, _ = simulate(TABLES, 3, SLOTS, InMemory(ORDERS[name]))
    again, _ = simulate(TABLES, 3, SLOTS, InMemory(ORDERS[name]))
    assert done == again
    assert 0 < done.opened < nothing.opened
    longest_job_s = (FIXED_BYTES + JOB_BYTES) / BYTES_PER_S
    assert 0 < done.cpu_s <= SLOTS * (HOURS * 3_600 + longest_job_s)


def test_the_benefit_per_byte_of_the_tables_of_fair_tenants_saves_more_than_fair_tables_do() -> None:
    for_tables, _ = simulate(TABLES, 3, SLOTS, InMemory(fair_tables))
    for_benefit, _ = simulate(TABLES, 3, SLOTS, InMemory(benefit(slack_bytes=float("inf"))))
    assert for_benefit.opened / for_benefit.cpu_s < for_tables.opened / for_tables.cpu_s


@pytest.mark.redis
def test_the_queues_own_scripts_save_readers_more_than_fair_tables_do() -> None:
    for_tables, _ = simulate(TABLES, 3, SLOTS, InMemory(fair_tables))
    with queue_order() as order:
        ours, _ = simulate(TABLES, 3, SLOTS, order)
    assert ours.opened < for_tables.opened
