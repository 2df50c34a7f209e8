"""What a table's format does not support has no effect, and the owner of the table reads why."""

import pytest

from decider.decide.actions import ACTIONS
from decider.state.effective_policy import EffectivePolicy, LogStatus, PolicyDefaults
from shared.jobs.payload import CHECKPOINT, COMPACT, SORT, VACUUM
from shared.policy.policy import ClusteringOrder, Policy
from shared.table import TableId, TableRef

TABLE = TableRef(TableId("t"), "t", "file:///t")
ORDERS = {"lakewright.sort-by": "a"}, {"lakewright.zorder-by": "a, b"}, {"lakewright.clustering-order": "time"}
JOBS = {"lakewright.vacuum": "on"}, {"lakewright.checkpoint-every": "10"}


def in_force(table_format: str, configuration: dict[str, str]) -> EffectivePolicy:
    return PolicyDefaults().resolve(TABLE, configuration, {}, LogStatus(format=table_format))


@pytest.mark.parametrize("name", ["delta", ""])
@pytest.mark.parametrize("configuration", [{}, *ORDERS, *JOBS])
def test_nothing_is_taken_from_a_format_that_supports_everything(name: str, configuration: dict[str, str]) -> None:
    found = in_force(name, configuration)
    assert all(found.policy.runs(kind) for kind in (*ACTIONS.kinds, "a kind of a later release"))
    assert (found.policy.traits.job_kinds, found.notes) == ("", ())


@pytest.mark.parametrize("configuration", ORDERS)
def test_an_order_of_an_iceberg_table_has_no_effect_and_a_note_says_so(configuration: dict[str, str]) -> None:
    ordered, found = (in_force(name, configuration) for name in ("delta", "iceberg"))
    assert ordered.policy.sort_order is not None or ordered.policy.is_ordered
    assert found.policy.sort_order is None
    assert not found.policy.is_ordered
    (name,) = configuration
    (note,) = found.notes
    assert note.startswith(f"{name.removeprefix('lakewright.')} has no effect")
    assert not found.policy.runs(SORT)
    assert found.policy.runs(COMPACT)


def test_a_job_that_no_actor_runs_on_iceberg_tables_has_a_note_with_advice() -> None:
    found = in_force("iceberg", JOBS[1])
    assert not found.policy.runs(CHECKPOINT)
    (note,) = found.notes
    assert "no effect on Iceberg tables" in note
    assert "rewrite-manifests" in note


def test_the_retention_of_snapshots_is_that_of_an_iceberg_table_if_it_is_longer() -> None:
    assert in_force("iceberg", JOBS[0]).policy.runs(VACUUM)
    assert in_force("iceberg", {}).policy.retention_s == 7 * 86_400
    found = in_force("iceberg", {"history.expire.max-snapshot-age-ms": str(30 * 86_400_000)})
    assert found.policy.retention_s == 30 * 86_400
    assert "720 hours" in found.notes[0]


@pytest.mark.parametrize("name", ["lakewright.retain", "snapshot.base.keep.minutes"])
def test_a_retention_that_lengthens_nothing_has_a_note(name: str) -> None:
    value = "1440" if name.startswith("snapshot") else "24 hours"
    found = in_force("delta", {name: value})
    assert found.policy.retention_s == 7 * 86_400
    (note,) = found.notes
    assert note.startswith("removed files are kept for 168 hours, not for 24")
    assert in_force("delta", {name: value, "delta.deletedFileRetentionDuration": "interval 1 day"}).notes == ()
    assert in_force("delta", {"lakewright.retain": "30 days"}).notes == ()


MAXCOMPUTES = "acid.data.retain.hours"


def test_hours_to_retain_switch_a_vacuum_to_the_hour_on_and_shorten_deltas_default() -> None:
    policy = in_force("delta", {MAXCOMPUTES: "24"}).policy
    assert (policy.vacuum, policy.retention_s, policy.vacuum_every_s) == (True, 86_400, 3_600)
    assert in_force("delta", {MAXCOMPUTES: "24"}).origins["vacuum"].name == MAXCOMPUTES
    assert not in_force("delta", {MAXCOMPUTES: "24", "lakewright.vacuum": "off"}).policy.vacuum


@pytest.mark.parametrize(
    ("table_format", "configuration", "hours"),
    [
        ("delta", {MAXCOMPUTES: "48"}, 48),
        ("delta", {MAXCOMPUTES: "1"}, 24),
        ("delta", {MAXCOMPUTES: "0"}, 24),
        ("delta", {MAXCOMPUTES: "1", "lakewright.min-retain": "1 hour"}, 1),
        ("delta", {MAXCOMPUTES: "24", "delta.deletedFileRetentionDuration": "interval 3 days"}, 72),
        ("delta", {MAXCOMPUTES: "24", "lakewright.retain": "30 days"}, 720),
        ("iceberg", {MAXCOMPUTES: "24"}, 120),
    ],
)
def test_hours_to_retain_go_below_a_day_and_what_else_is_set_only_where_that_is_said(
    table_format: str, configuration: dict[str, str], hours: int
) -> None:
    found = in_force(table_format, configuration)
    assert found.policy.retention_s == hours * 3_600
    assert bool(found.notes) is (int(configuration[MAXCOMPUTES]) != hours)
    assert all(note.startswith(f"removed files are kept for {hours} hours") for note in found.notes)


def test_hours_to_retain_of_a_registration_do_not_shorten_the_tables_own_retention() -> None:
    registered = TableRef(TableId("t"), "t", "file:///t", "", {MAXCOMPUTES: "24"})
    assert PolicyDefaults().resolve(registered, {}, {}, LogStatus(format="delta")).policy.retention_s == 7 * 86_400


@pytest.mark.parametrize(
    ("configuration", "notes"),
    [
        ({"lakewright.primary-key": "id"}, 1),
        ({"lakewright.sequence-by": "ts"}, 1),
        ({"lakewright.primary-key": "id", "lakewright.sequence-by": "ts"}, 0),
    ],
)
def test_half_of_a_key_has_no_effect_and_a_note_says_so(configuration: dict[str, str], notes: int) -> None:
    found = in_force("delta", configuration)
    assert (len(found.notes), found.policy.has_key) == (notes, not notes)
    assert all("without each other" in note for note in found.notes)


def test_limits_are_part_of_the_policy_that_jobs_and_records_carry() -> None:
    limited = in_force("iceberg", {}).policy
    assert Policy.decode(limited.encode()) == limited
    assert limited.version != Policy().version
    assert limited.with_traits(job_kinds="", orders_rows=True) == Policy()
    assert limited.clustering_order is ClusteringOrder.NONE


def test_what_a_format_does_not_have_has_a_note() -> None:
    wanted = {
        "lakewright.rewrite-manifests-at": "10",
        "lakewright.merge-deletes-at": "10",
        "lakewright.convert-deletes-at": "10",
        "lakewright.compute-statistics-at": "0.1",
        "lakewright.yield-to-writers": "on",
    }
    assert in_force("iceberg", wanted).notes == ()
    assert in_force("delta", wanted).notes == (
        "rewrite-manifests-at has no effect on Delta tables: they have no manifests",
        "compute-statistics-at has no effect on Delta tables: they have no place for statistics of columns",
        "merge-deletes-at has no effect on Delta tables: they have no delete files",
        "convert-deletes-at has no effect on Delta tables: they have no delete files by value",
        "yield-to-writers has no effect on Delta tables: no catalog could undo their commits",
    )
