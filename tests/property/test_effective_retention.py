"""What a vacuum may delete, against a replay, and that the decider finds it due only when something would go."""

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from decider.decide.decision import TableSignals
from decider.decide.vacuum import VACUUM_ACTION, VacuumReason
from decider.state.effective_policy import LogStatus, PolicyDefaults
from shared.formats.delta_orphans import MIN_ORPHAN_AGE_MS
from shared.formats.delta_references import reference
from shared.formats.delta_vacuum import LoggedCommit
from shared.formats.delta_vacuum_plan import VacuumInputs, plan_vacuum, retention_ms
from shared.jobs.options import VacuumOptions
from shared.layout.removals import BUCKET_MS, Removals
from shared.policy.policy import Policy
from shared.policy.properties import read_properties
from shared.queue.model import TimerChange
from shared.table import TableId, TableMetadata, TableRef
from tests.support.examples import examples
from tests.support.vacuum_world import HOUR_MS, SPELLINGS, VacuumWorld

DAY_S = 86_400
REMOVED_MS = 1_000 * DAY_S * 1_000
DELTA = "delta.deletedFileRetentionDuration"
RECLAIM = "acid.data.retain.hours"
HOURS = st.sampled_from([1, 24, 100, 168, 169, 720])
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        DELTA: HOURS.map(lambda hours: f"interval {hours} hours"),
        "lakewright.min-retain": HOURS.map(lambda hours: f"{hours} hours"),
        "lakewright.retain": HOURS.map(lambda hours: f"{hours} hours"),
        RECLAIM: HOURS.map(str),
    },
)
REGISTERED = st.fixed_dictionaries(
    {},
    optional={
        name: HOURS.map(lambda hours: f"{hours} hours") for name in ("lakewright.min-retain", "lakewright.retain")
    },
)
SERVICES = HOURS.map(lambda hours: Policy(min_retain_s=hours * 3_600)) | st.just(Policy())
ON = {"lakewright.vacuum": "on", "lakewright.orphans-every": "off"}


def in_force(configuration: dict[str, str], registered: dict[str, str], service: Policy) -> Policy:
    table = TableRef(TableId("t"), "t", "file:///t", "", registered)
    return PolicyDefaults(service).resolve(table, configuration, {}, LogStatus(format="delta")).policy


@given(configuration=PROPERTIES, registered=REGISTERED, service=SERVICES)
@example(configuration={"lakewright.min-retain": "24 hours"}, registered={}, service=Policy())
@example(
    configuration={"lakewright.retain": "720 hours"}, registered={"lakewright.retain": "1 hours"}, service=Policy()
)
@example(configuration={DELTA: "interval 1 hours"}, registered={}, service=Policy())
def test_a_due_vacuum_deletes_what_was_removed_and_one_that_is_not_due_deletes_nothing(
    configuration: dict[str, str], registered: dict[str, str], service: Policy
) -> None:
    configuration = {**configuration, **ON}
    policy, metadata = in_force(configuration, registered, service), TableMetadata("u", (), configuration)
    assert retention_ms(policy, metadata, VacuumOptions()) == policy.retention_s * 1000
    event(f"{policy.retention_s / 3600:g} hours, of its own: {policy.traits.own_retention_s > 0}")
    removed = (reference({"path": "a.parquet", "size": 5}, "file:///t"),)
    commits = (LoggedCommit(0, REMOVED_MS - 1), LoggedCommit(1, REMOVED_MS, removed=removed))
    signals = TableSignals(1, Removals.of([(REMOVED_MS, 5)]))
    due_ms, change = VACUUM_ACTION.timer(signals, policy, REMOVED_MS) or (0, None)
    assert change is TimerChange.SET
    inputs, retain_ms = VacuumInputs(1, (), (), (), commits), retention_ms(policy, metadata, VacuumOptions())
    for at_ms in (due_ms, due_ms + 10 * DAY_S * 1000):
        assert VACUUM_ACTION.evaluate(signals, policy, at_ms).reason is VacuumReason.FILES_EXPIRED
        assert plan_vacuum(inputs, retain_ms, at_ms).files == 1
    assert VACUUM_ACTION.evaluate(signals, policy, due_ms - 1).reason is VacuumReason.NOTHING_EXPIRED
    assert plan_vacuum(inputs, retain_ms, due_ms - BUCKET_MS - 1).files == 0


@given(configuration=PROPERTIES, registered=REGISTERED, service=SERVICES)
@example(configuration={RECLAIM: "24", DELTA: "interval 100 hours"}, registered={}, service=Policy())
def test_no_retention_that_the_table_sets_is_shortened_by_hours_to_retain(
    configuration: dict[str, str], registered: dict[str, str], service: Policy
) -> None:
    """Nor does a registration shorten it, and without a word of the table it is Delta's default, or a day."""
    policy, metadata = in_force(configuration, registered, service), TableMetadata("u", (), configuration)
    event(f"reclaims: {RECLAIM in configuration}, by Delta's: {DELTA in configuration}")
    leasts = {"lakewright.min-retain", DELTA} & configuration.keys()
    counted = configuration.keys() - ({RECLAIM} if leasts else set())
    set_s = [read_properties({name: configuration[name]}).values for name in counted]
    expected = [values.get(name, 0) for values in set_s for name in ("retain_s", "min_retain_s")]
    expected += [] if {RECLAIM, DELTA} & configuration.keys() else [7 * DAY_S]
    assert retention_ms(Policy(min_retain_s=0), metadata, VacuumOptions()) == max(expected) * 1_000
    assert policy.retention_s >= max(expected)


@given(configuration=PROPERTIES, registered=REGISTERED)
def test_a_retention_that_cannot_be_read_leaves_that_of_the_policy(
    configuration: dict[str, str], registered: dict[str, str]
) -> None:
    broken = {**configuration, DELTA: "soon"}
    policy = in_force(broken, registered, Policy())
    assert policy.traits.own_retention_s == 0
    assert policy.retention_s >= max(policy.min_retain_s, policy.retain_s or 0)


@pytest.mark.parametrize(("table_format", "hours"), [("iceberg", 5 * 24), ("", 1)])
def test_iceberg_keeps_snapshots_for_five_days_and_an_unknown_format_has_no_retention(
    table_format: str, hours: int
) -> None:
    table = TableRef(TableId("t"), "t", "file:///t")
    found = PolicyDefaults().resolve(table, {"lakewright.min-retain": "1 hour"}, {}, LogStatus(format=table_format))
    assert found.policy.retention_s == hours * 3_600


def test_an_owner_reads_that_the_tables_own_retention_is_longer_and_jobs_carry_it() -> None:
    table = TableRef(TableId("t"), "t", "file:///t")
    found = PolicyDefaults().resolve(table, {"lakewright.min-retain": "1 hour"}, {}, LogStatus(format="delta"))
    (note,) = found.notes
    assert "168 hours" in note
    assert Policy.decode(found.policy.encode()) == found.policy
    assert found.policy.with_traits(own_retention_s=0).retention_s == 3_600
    assert PolicyDefaults().resolve(table, {}, {}, LogStatus(format="delta")).notes == ()


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3), st.sampled_from(SPELLINGS)),
    st.tuples(st.just("rewrite"), st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.just("delete"), st.integers(0, 5), st.integers(0, 2 * HOUR_MS)),
    st.tuples(st.just("vector"), st.integers(0, 5), st.integers(0, 2 * HOUR_MS)),
    st.tuples(st.just("restore"), st.integers(0, 10), st.just(0)),
    st.tuples(st.just("refused"), st.sampled_from(SPELLINGS), st.just(0)),
    st.tuples(st.just("change"), st.integers(1, 2), st.just(0)),
    st.tuples(st.just("wait"), st.integers(0, 60), st.just(0)),
)


def play(world: VacuumWorld, step: tuple) -> None:
    kind, first, second = step
    live = list(world.versions[-1].values()) if world.versions else []
    if kind == "append":
        world.commit([world.write(second) for _ in range(first)])
    elif kind == "rewrite" and live:
        chosen = live[first % len(live) :][: second + 1]
        world.commit([world.write("plain")], chosen)
    elif kind == "delete" and live:
        world.commit((), [live[first % len(live)]], lag_ms=second)
    elif kind == "vector" and live:
        old = live[first % len(live)]
        new = world.with_vector(old)
        world.commit([new], [old], lag_ms=second)
    elif kind == "restore" and world.versions:
        number = max(world.oldest, len(world.versions) - 1 - first)
        target = world.versions[number]
        # Delta's RESTORE refuses a version whose files are gone.
        if world.files_of(number) <= world.store.keys():
            now = world.versions[-1]
            back = [one for path, one in target.items() if now.get(path) != one]
            gone = [one for path, one in now.items() if target.get(path) != one]
            world.commit(back, gone)
    elif kind == "refused":
        world.write(first)
    elif kind == "change":
        world.commit(changes=first)
    elif kind == "wait":
        world.now_ms += first * HOUR_MS
    world.now_ms += 1


@settings(max_examples=examples(3))
@given(
    steps=st.lists(STEPS, min_size=1, max_size=25),
    retain_h=st.sampled_from([0, 1, 24, 48, 168]),
    cleanup_at=st.none() | st.integers(0, 24),
)
def test_no_file_that_a_version_inside_the_retention_needs_is_deleted_and_all_others_are(
    steps: list[tuple], retain_h: int, cleanup_at: int | None
) -> None:
    world = VacuumWorld()
    world.commit([world.write("plain")])
    world.now_ms += 1
    for number, step in enumerate(steps):
        play(world, step)
        if number == cleanup_at:
            world.clean_log()
    retain_ms = retain_h * HOUR_MS
    deleted, needed = world.deletable(retain_ms), world.truly_needed(retain_ms)
    assert not deleted & needed
    young_ms = min(world.now_ms - retain_ms, world.now_ms - MIN_ORPHAN_AGE_MS)
    uncommitted = {name for name, at_ms in world.store.items() if at_ms >= young_ms}
    event(f"deletes something: {bool(deleted)}; log was cleaned: {world.first_commit > 0}")
    if world.first_commit == 0:
        left = world.store.keys() - deleted - needed
        # Only what is too young to be told from the files of a writer that has not committed yet is left.
        assert left <= uncommitted
        named = {name for commit in world.read() for one in commit.removed for name, _ in one.own}
        assert not left & named - {
            name for commit in world.read() if commit.time_ms >= world.now_ms - retain_ms for name in _names(commit)
        }


def _names(commit) -> set[str]:
    return {name for one in (*commit.added, *commit.removed, *commit.changes) for name in one.kept}


@given(
    steps=st.lists(STEPS, min_size=1, max_size=20), more=st.lists(STEPS, max_size=6), retain_h=st.sampled_from([0, 24])
)
def test_after_a_vacuum_every_version_inside_the_retention_reads_and_a_second_one_finds_nothing(
    steps: list[tuple], more: list[tuple], retain_h: int
) -> None:
    world = VacuumWorld()
    world.commit([world.write("plain")])
    for step in steps:
        play(world, step)
    retain_ms = retain_h * HOUR_MS
    for name in world.deletable(retain_ms):
        del world.store[name]
    assert world.deletable(retain_ms) == set()
    for step in more:
        play(world, step)
    for version in world.readable(retain_ms):
        assert not world.files_of(version) - world.store.keys()
