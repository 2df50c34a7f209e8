"""What a million tables need follows from the two largest sizes that were measured."""

from dataclasses import replace

from tests.bench.capacity import Capacity, million

ONE = Capacity(
    tables=10_000,
    sweep_s=300.0,
    first_read_s=10.0,
    settled_s=11.0,
    first_cpu_ms_per_table=1.0,
    decider_mib=100.0,
    redis_mib=20.0,
    redis_bytes_per_table=1_000.0,
    swept_per_s=40.0,
    decider_share=0.1,
    redis_share=0.01,
    commits_per_s=5.0,
    busy_decider_share=0.2,
    busy_redis_share=0.02,
    lag_s=0.1,
    jobs=7,
    busy_slots=1.5,
)


def test_a_million_tables_are_extended_from_the_two_largest_sizes() -> None:
    small, large = replace(ONE, tables=1_000, redis_mib=999.0), replace(ONE, tables=100_000, redis_mib=110.0)
    found = million([large, small, ONE])
    assert found["redis_mib"] == 1_010.0
    assert found["decider_mib"] == 100.0
