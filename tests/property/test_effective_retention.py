"""The decider finds a vacuum due only when the actor would delete something, whatever sets the retention and where."""

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from decider.decide.decision import TableSignals
from decider.decide.vacuum import VACUUM_ACTION, VacuumReason
from decider.state.effective_policy import LogStatus, PolicyDefaults
from shared.formats.delta_references import reference
from shared.formats.delta_vacuum import LoggedCommit
from shared.formats.delta_vacuum_plan import VacuumInputs, plan_vacuum, retention_ms
from shared.jobs.vacuum_options import VacuumOptions
from shared.layout.removals import BUCKET_MS, Removals
from shared.policy.policy import Policy
from shared.queue.model import TimerChange
from shared.table import TableId, TableMetadata, TableRef

DAY_S = 86_400
REMOVED_MS = 1_000 * DAY_S * 1_000
DELTA = "delta.deletedFileRetentionDuration"
HOURS = st.sampled_from([1, 24, 100, 168, 169, 720])
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        DELTA: HOURS.map(lambda hours: f"interval {hours} hours"),
        "lakewright.min-retain": HOURS.map(lambda hours: f"{hours} hours"),
        "lakewright.retain": HOURS.map(lambda hours: f"{hours} hours"),
        "acid.data.retain.hours": HOURS.map(str),
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
