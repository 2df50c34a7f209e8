"""Filters that move with the time: what is decided by one is what its literals would lead to, at every moment.

The oracle steps from hour to hour, and knows no moment at which anything changes.
"""

import random
from calendar import monthrange
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decider.decide.compaction import COMPACTION
from decider.decide.compaction_timers import COMPACTION_TIMERS
from decider.decide.decision import Trigger, TriggerSource
from decider.decide.evaluate import evaluate
from shared.layout.partition_count import count_partitions
from shared.layout.partition_stats import stats_of_files
from shared.partitions import partition_key
from shared.policy.partition_filter import is_relative, literal_filter, next_entry_ms, permits
from shared.policy.policy import MIB, Policy
from shared.queue.model import TimerChange
from shared.table import DataFile, PartitionColumn, PartitionKey
from tests.support.decisions import context_of

COLUMNS = (PartitionColumn("dt", "col-1", "string"), PartitionColumn("hour", "col-2", "string"))
HOUR_MS = 3_600_000
HOURS = 62 * 24
"""Two months, in hours."""

STARTS = ("2026-01-28", "2028-01-30", "2027-12-01", "2026-03-31", "2024-02-27")
"""Ends of months and of years, and leap days."""

DAYS = ("%Y-%m-%d", "%Y%m%d", "%Y-%m-%d 00:00:00")
TIMES = ("%Y-%m-%d-%H", "%Y-%m-%dT%H:%M:%S.000000Z", "%Y-%m-%d %H:%M:%S+00:00")


def ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def random_condition(dice: random.Random) -> str:
    """A comparison, moving or not; a moment that is met for one second alone is none that hours show."""
    column, sign = dice.choice(["dt", "hour"]), dice.choice("+-")
    hours = f"{sign} {dice.randrange(72)} hours"
    days = f"{sign} {dice.choice(['3 days', '1 week', '40 days', '1 month', '2 months', '13 months'])}"
    if dice.random() < 0.5:
        operator = dice.choice(["<", "<=", ">", ">=", "!=", "="])
        return f"{column} {operator} current_date {dice.choice(['', days, hours])}"
    if dice.random() < 0.6:
        return f"{column} {dice.choice(['<', '<=', '>', '>='])} current_timestamp {dice.choice(['', hours])}"
    return dice.choice(["dt is not null", "dt >= date '2026-02-01'", "hour != 'x'"])


def random_filter(dice: random.Random) -> str:
    return " and ".join(random_condition(dice) for _ in range(dice.randint(1, 3)))


def random_partition(dice: random.Random, start: datetime) -> PartitionKey:
    at = start + timedelta(hours=dice.randrange(-24 * 40, HOURS + 24 * 40))
    values = [at.strftime(dice.choice(DAYS)), at.strftime(dice.choice(TIMES)), None, "none"]
    return partition_key(COLUMNS, {one.physical: dice.choices(values, [6, 6, 1, 1])[0] for one in COLUMNS})


@pytest.mark.parametrize("seed", range(60))
def test_a_partition_enters_at_the_first_hour_at_which_it_is_let_in(seed: int) -> None:
    print(f"seed {seed}")
    dice = random.Random(seed)
    start = datetime.fromisoformat(dice.choice(STARTS)).replace(tzinfo=UTC)
    text, partition = random_filter(dice), random_partition(dice, start)
    first_ms = ms(start)
    answers = []
    for hour in range(HOURS):
        at_ms = first_ms + hour * HOUR_MS
        answers.append(permits(text, partition, COLUMNS, at_ms))
        assert permits(literal_filter(text, at_ms), partition, COLUMNS, 0) is answers[-1], "the literal's answer"
    entries = [first_ms + hour * HOUR_MS for hour in range(1, HOURS) if answers[hour] and not answers[hour - 1]]
    found, at_ms = [], first_ms
    while (entry_ms := next_entry_ms(text, partition, COLUMNS, at_ms)) is not None and len(found) < HOURS:
        if entry_ms >= first_ms + HOURS * HOUR_MS:
            break
        # What happens in the midst of an hour is seen at its end.
        found.append(-(-entry_ms // HOUR_MS) * HOUR_MS)
        at_ms = entry_ms
    assert sorted(set(found)) == entries, (text, partition)


@given(st.integers(0, 2**32))
@settings(max_examples=150)
def test_a_partition_is_decided_as_by_the_literals_and_evaluated_when_it_enters(seed: int) -> None:
    dice = random.Random(seed)
    start = datetime.fromisoformat(dice.choice(STARTS)).replace(tzinfo=UTC)
    partition = random_partition(dice, start)
    at_ms = ms(start) + dice.randrange(HOURS * HOUR_MS)
    policy = Policy(target_bytes=8 * MIB, filter=random_filter(dice))
    files = [DataFile(f"f{n}", MIB, partition, modified_ms=at_ms) for n in range(dice.choice([1, 2, 12]))]
    state = stats_of_files(files, policy.size_levels)

    def decided(text: str | None, at_ms: int, source: TriggerSource) -> tuple[object, ...]:
        context = context_of(Policy(target_bytes=8 * MIB, filter=text), columns=COLUMNS, at_ms=at_ms)
        made = evaluate(context, partition, state, Trigger(1, source), COMPACTION)
        return made.verdict, made.reason, made.prediction

    literal = literal_filter(str(policy.filter), at_ms)
    for source in (TriggerSource.DATA_CHANGE, TriggerSource.REBUILD):
        assert decided(policy.filter, at_ms, source) == decided(literal, at_ms, source)
    if is_relative(policy.filter):
        of_timer = decided(policy.filter, at_ms, TriggerSource.TIMER)
        assert of_timer == decided(literal, at_ms, TriggerSource.REBUILD), "a timer that is late finds it filtered"
    made = list(COMPACTION_TIMERS.after_commit(partition, state, policy, at_ms, COLUMNS))
    again = list(COMPACTION_TIMERS.after_rebuild(count_partitions(files, policy), policy, at_ms, COLUMNS))
    assert [one for one in made if one.change is not TimerChange.STOP] == again, "a rebuild sets the same timers"
    for timer in again:
        assert permits(policy.filter, partition, COLUMNS, timer.fires_at_ms), "a timer fires where it finds work"
    entry_ms = next_entry_ms(policy.filter, partition, COLUMNS, at_ms)
    entries = [one.fires_at_ms for one in again if one.name.startswith("compact ")]
    assert entries == ([] if entry_ms is None else [entry_ms])


def test_months_go_to_the_last_day_of_a_shorter_month() -> None:
    for day in range(1, 800):
        at = datetime(2026, 12, 31, 12, tzinfo=UTC) + timedelta(days=day)
        year, month = (at.year, at.month - 1) if at.month > 1 else (at.year - 1, 12)
        expected = datetime(year, month, min(at.day, monthrange(year, month)[1]), tzinfo=UTC)
        assert literal_filter("dt > current_date - 1 month", ms(at)) == f"dt > date '{expected.date().isoformat()}'"
