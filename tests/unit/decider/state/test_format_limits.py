"""What a table's format does not support has no effect, and the owner of the table reads why."""

from dataclasses import replace

import pytest

from decider.decide.actions import ACTIONS
from decider.state.effective_policy import EffectivePolicy, LogStatus, PolicyDefaults
from shared.job_payload import CHECKPOINT, COMPACT, VACUUM
from shared.policy import Policy
from shared.table import TableId, TableRef

TABLE = TableRef(TableId("t"), "t", "file:///t")
JOBS = {"lakewright.vacuum": "on"}, {"lakewright.checkpoint-every": "10"}


def in_force(table_format: str, configuration: dict[str, str]) -> EffectivePolicy:
    return PolicyDefaults().resolve(TABLE, configuration, {}, LogStatus(format=table_format))


@pytest.mark.parametrize("name", ["delta", ""])
@pytest.mark.parametrize("configuration", [{}, *JOBS])
def test_nothing_is_taken_from_a_format_that_supports_everything(name: str, configuration: dict[str, str]) -> None:
    found = in_force(name, configuration)
    assert all(found.policy.runs(kind) for kind in (*ACTIONS.kinds, "a kind of a later release"))
    assert (found.policy.job_kinds, found.notes) == ("", ())


@pytest.mark.parametrize(
    ("configuration", "kind", "advice"),
    [(JOBS[0], VACUUM, "expire_snapshots"), (JOBS[1], CHECKPOINT, "rewrite_manifests")],
)
def test_a_job_that_no_actor_runs_on_iceberg_tables_has_a_note_with_advice(
    configuration: dict[str, str], kind: str, advice: str
) -> None:
    found = in_force("iceberg", configuration)
    assert not found.policy.runs(kind)
    (note,) = found.notes
    assert "no effect on Iceberg tables" in note
    assert advice in note


def test_limits_are_part_of_the_policy_that_jobs_and_records_carry() -> None:
    limited = in_force("iceberg", {}).policy
    assert Policy.decode(limited.encode()) == limited
    assert limited.version != Policy().version
    assert replace(limited, job_kinds="") == Policy()
    assert limited.runs(COMPACT)
