"""When the actions on a whole table are due, each by its own rule: vacuum, checkpoint, manifests, keys, properties."""

from dataclasses import replace
from fractions import Fraction

import pytest

from decider.decide.checkpoint import CHECKPOINT_ACTION, CheckpointReason
from decider.decide.decision import Prediction, TableSignals
from decider.decide.metadata_upkeep import EVALUATED_AFTER_MS, UPKEEP_ACTIONS, MetadataUpkeep
from decider.decide.row_removal import DEDUPLICATE_ACTION, EXPIRE_ACTION, DeduplicateReason, ExpiryReason
from decider.decide.set_properties import SET_PROPERTIES_ACTION, PropertiesReason
from decider.decide.signals_text import describe
from decider.decide.vacuum import VACUUM_ACTION, VacuumReason
from shared.jobs.options import DeduplicateOptions, ExpiryOptions, VacuumOptions
from shared.layout.key_runs import KeyRuns
from shared.layout.removals import Removals
from shared.layout.upkeep import UPKEEP, UpkeepFound
from shared.policy.policy import Policy
from shared.queue.model import TimerChange

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
NOW_MS = 100 * DAY_MS
POLICY = Policy(vacuum=True, orphans_every_s=None)


def signals(*removed: tuple[int, int], vacuumed_ms: int = 0, listed_ms: int = 0) -> TableSignals:
    return TableSignals(9, replace(Removals.of(removed), vacuumed_ms=vacuumed_ms, listed_ms=listed_ms))


def test_a_vacuum_is_due_when_a_whole_bucket_of_removals_is_older_than_the_retention() -> None:
    seen = signals((NOW_MS, 5), (NOW_MS + HOUR_MS, 7))
    due_ms = NOW_MS + HOUR_MS + 7 * DAY_MS
    early, late = (VACUUM_ACTION.evaluate(seen, POLICY, at_ms) for at_ms in (due_ms - 1, due_ms))
    assert (early.reason, early.prediction) == (VacuumReason.NOTHING_EXPIRED, None)
    assert late.reason is VacuumReason.FILES_EXPIRED
    assert late.prediction is not None
    assert late.prediction.files_removed == 1
    assert VACUUM_ACTION.timer(seen, POLICY, NOW_MS) == (due_ms, TimerChange.SET)


@pytest.mark.parametrize(("retain_s", "days"), [(None, 7), (86_400, 7), (20 * 86_400, 20)])
def test_the_retention_is_never_below_the_tables_least(retain_s: int | None, days: int) -> None:
    seen = signals((NOW_MS, 5))
    assert VACUUM_ACTION.timer(seen, replace(POLICY, retain_s=retain_s), NOW_MS) == (
        NOW_MS + HOUR_MS + days * DAY_MS,
        TimerChange.SET,
    )


def test_a_table_without_removals_has_no_timer_unless_the_store_is_listed_at_times() -> None:
    assert VACUUM_ACTION.timer(signals(), POLICY, NOW_MS) == (0, TimerChange.STOP)
    listing = replace(POLICY, orphans_every_s=86_400)
    assert VACUUM_ACTION.timer(signals(listed_ms=NOW_MS), listing, NOW_MS) == (NOW_MS + DAY_MS, TimerChange.SET)


def test_orphans_are_due_at_first_and_then_as_often_as_the_policy_says() -> None:
    listing = replace(POLICY, orphans_every_s=86_400)
    first = VACUUM_ACTION.evaluate(signals(), listing, NOW_MS)
    assert (first.reason, VacuumOptions.decode(first.options).with_orphans) == (VacuumReason.ORPHANS_DUE, True)
    for later_ms, reason in ((DAY_MS - 1, VacuumReason.NOTHING_EXPIRED), (DAY_MS, VacuumReason.ORPHANS_DUE)):
        assert VACUUM_ACTION.evaluate(signals(listed_ms=NOW_MS), listing, NOW_MS + later_ms).reason is reason
    expired = VACUUM_ACTION.evaluate(signals((0, 1), listed_ms=NOW_MS), listing, NOW_MS)
    assert (expired.reason, VacuumOptions.decode(expired.options).with_orphans) == (VacuumReason.FILES_EXPIRED, False)


def test_a_table_with_two_names_is_not_vacuumed_whatever_is_due() -> None:
    """What expires in the metadata of one name may be the newest snapshot of the other's."""
    seen = replace(signals((NOW_MS, 5)), twins=("copy",))
    late_ms = NOW_MS + 30 * DAY_MS
    assert VACUUM_ACTION.evaluate(replace(seen, twins=()), POLICY, late_ms).prediction is not None
    found = VACUUM_ACTION.evaluate(seen, POLICY, late_ms)
    assert (found.reason, found.prediction) == (VacuumReason.SEVERAL_NAMES, None)
    assert "copy" in describe(seen)


def test_two_vacuums_are_vacuum_every_apart() -> None:
    seen = signals((0, 1), vacuumed_ms=NOW_MS)
    assert VACUUM_ACTION.evaluate(seen, POLICY, NOW_MS + DAY_MS - 1).reason is VacuumReason.VACUUMED_RECENTLY
    assert VACUUM_ACTION.evaluate(seen, POLICY, NOW_MS + DAY_MS).reason is VacuumReason.FILES_EXPIRED
    assert VACUUM_ACTION.timer(seen, POLICY, NOW_MS) == (NOW_MS + DAY_MS, TimerChange.SET)


CHECKPOINTED = Policy(checkpoint_every=100)


@pytest.mark.parametrize(
    ("version", "checkpoint", "reason"),
    [
        (99, -1, CheckpointReason.MANY_COMMITS),
        (98, -1, CheckpointReason.FEW_COMMITS),
        (200, 100, CheckpointReason.MANY_COMMITS),
        (200, 101, CheckpointReason.FEW_COMMITS),
        (200, None, CheckpointReason.NOT_KNOWN),
    ],
)
def test_a_checkpoint_is_written_when_so_many_commits_follow_the_newest(
    version: int, checkpoint: int | None, reason: CheckpointReason
) -> None:
    made = CHECKPOINT_ACTION.evaluate(TableSignals(version, checkpoint=checkpoint), CHECKPOINTED, 0)
    assert made.reason is reason
    assert (made.prediction is None) == (reason is not CheckpointReason.MANY_COMMITS)


def test_without_the_property_none_is_proposed() -> None:
    made = CHECKPOINT_ACTION.evaluate(TableSignals(10**6, checkpoint=-1), Policy(), 0)
    assert (made.reason, made.prediction) == (CheckpointReason.FEW_COMMITS, None)


@pytest.mark.parametrize(
    ("version", "new", "expected"),
    [
        (98, 1, False),
        (99, 1, True),
        (100, 1, False),
        (150, 64, True),
        (150, 50, False),
        (199, 100, True),
        (5, 6, False),
    ],
)
def test_the_table_is_evaluated_when_its_commits_pass_a_multiple(version: int, new: int, expected: bool) -> None:
    found = CHECKPOINT_ACTION.timer(TableSignals(version, new_commits=new), CHECKPOINTED, 17)
    assert found == ((17, TimerChange.EARLIER) if expected else None)
    assert CHECKPOINT_ACTION.timer(TableSignals(version, new_commits=new), Policy(), 17) is None


UPKEPT = Policy(
    rewrite_manifests_at=50, merge_deletes_at=50, convert_deletes_at=50, compute_statistics_at=Fraction(1, 10)
)


@pytest.mark.parametrize("action", UPKEEP_ACTIONS)
def test_upkeep_is_proposed_where_as_much_is_to_be_done_as_the_policy_says(action: MetadataUpkeep) -> None:
    for found, reason in (
        (UpkeepFound(60, 50, 900), action.of.due),
        (UpkeepFound(60, 5, 900), action.of.not_due),
        (None, action.of.not_known),
    ):
        signals = TableSignals(7, upkeep={} if found is None else {action.kind: found})
        made = action.evaluate(signals, UPKEPT, 0)
        charged = (900, 1) if action.of.renews_all else (0, 50)
        expected = Prediction(0, 0, charged[0], Fraction(charged[1]), 0, 0) if reason is action.of.due else None
        assert (made.reason, made.prediction) == (reason, expected)


@pytest.mark.parametrize("action", UPKEEP_ACTIONS)
def test_a_table_is_evaluated_some_time_after_new_commits_and_not_later_for_those_that_follow(
    action: MetadataUpkeep,
) -> None:
    due = 17 + EVALUATED_AFTER_MS, TimerChange.EARLIER
    assert action.timer(TableSignals(7, new_commits=3), UPKEPT, 17) == due
    assert action.timer(TableSignals(7), UPKEPT, 17) is None
    assert action.timer(TableSignals(7, new_commits=3), Policy(), 17) is None
    assert (action.is_on(UPKEPT), action.is_on(Policy())) == (True, False)
    assert action.of.due in action.reasons


def test_the_record_of_a_decision_has_the_numbers() -> None:
    text = describe(TableSignals(7, upkeep={one.kind: UpkeepFound(90, 8, 1) for one in UPKEEP}))
    assert all(one.describe(UpkeepFound(90, 8, 1)) in text for one in UPKEEP)
    assert "rows changed" not in describe(TableSignals(7))


KEYED = Policy(primary_key="id", sequence_by="ts", deduplicate_every_s=100)


def key_signals(runs: KeyRuns) -> TableSignals:
    return TableSignals(9, key_runs=runs)


@pytest.mark.parametrize(
    ("runs", "at_ms", "reason", "timer"),
    [
        (KeyRuns(), 0, DeduplicateReason.NO_ROWS_ADDED, (0, TimerChange.STOP)),
        (KeyRuns(5), 0, DeduplicateReason.ROWS_ADDED, (0, TimerChange.SET)),
        (KeyRuns(5, 5, 1_000), 10**9, DeduplicateReason.NO_ROWS_ADDED, (0, TimerChange.STOP)),
        (KeyRuns(6, 5, 1_000), 100_999, DeduplicateReason.COMPARED_RECENTLY, (101_000, TimerChange.SET)),
        (KeyRuns(6, 5, 1_000), 101_000, DeduplicateReason.ROWS_ADDED, (101_000, TimerChange.SET)),
    ],
)
def test_a_run_is_due_once_rows_were_added_and_the_last_run_is_long_enough_ago(
    runs: KeyRuns, at_ms: int, reason: DeduplicateReason, timer: tuple[int, TimerChange]
) -> None:
    made = DEDUPLICATE_ACTION.evaluate(key_signals(runs), KEYED, at_ms)
    assert made.reason is reason
    assert (made.prediction is not None) == (reason is DeduplicateReason.ROWS_ADDED)
    assert DEDUPLICATE_ACTION.timer(key_signals(runs), KEYED, at_ms) == timer


AGED = Policy(delete_rows_after="90 days of ts", delete_rows_every_s=100)


@pytest.mark.parametrize(
    ("runs", "at_ms", "reason", "timer"),
    [
        (KeyRuns(), 0, ExpiryReason.NO_TIME_WENT_ON, (0, TimerChange.STOP)),
        (KeyRuns(5), 0, ExpiryReason.TIME_WENT_ON, (0, TimerChange.SET)),
        (KeyRuns(6, 5, 1_000), 100_999, ExpiryReason.EXPIRED_RECENTLY, (101_000, TimerChange.SET)),
        (KeyRuns(6, 5, 1_000), 101_000, ExpiryReason.TIME_WENT_ON, (101_000, TimerChange.SET)),
    ],
)
def test_rows_are_deleted_by_age_once_rows_were_added_and_the_job_has_the_time(
    runs: KeyRuns, at_ms: int, reason: ExpiryReason, timer: tuple[int, TimerChange]
) -> None:
    made = EXPIRE_ACTION.evaluate(key_signals(runs), AGED, at_ms)
    assert made.reason is reason
    if made.prediction is not None:
        assert ExpiryOptions.decode(made.options) == ExpiryOptions(at_ms)
    assert (made.prediction is not None) == (reason is ExpiryReason.TIME_WENT_ON)
    assert EXPIRE_ACTION.timer(key_signals(runs), AGED, at_ms) == timer
    assert (EXPIRE_ACTION.is_on(AGED), EXPIRE_ACTION.is_on(KEYED)) == (True, False)


def test_a_job_begins_where_the_last_run_ended() -> None:
    made = DEDUPLICATE_ACTION.evaluate(key_signals(KeyRuns(6, 5)), KEYED, 0)
    assert DeduplicateOptions.decode(made.options) == DeduplicateOptions(since_version=5)
    assert DeduplicateOptions.decode({}) == DeduplicateOptions()


def test_it_is_off_without_a_key() -> None:
    assert DEDUPLICATE_ACTION.is_on(KEYED)
    assert not DEDUPLICATE_ACTION.is_on(Policy())
    assert (DEDUPLICATE_ACTION.reasons, EXPIRE_ACTION.reasons) == (DeduplicateReason, ExpiryReason)


def test_neither_a_policy_nor_a_commit_has_properties_set() -> None:
    action = SET_PROPERTIES_ACTION
    assert not action.is_on(Policy())
    assert action.timer(TableSignals(9, new_commits=5), Policy(), 0) is None
    made = action.evaluate(TableSignals(9), Policy(), 0)
    assert (made.reason, made.prediction) == (PropertiesReason.ONLY_ON_REQUEST, None)
    assert "person" in made.reason.message
