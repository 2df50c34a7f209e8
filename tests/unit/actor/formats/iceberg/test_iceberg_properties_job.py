"""Properties are set once, under the lease, and only while those that the decision was made by are there."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from actor.formats.iceberg.properties_job import IcebergPropertiesJob
from actor.ports import TableJob, TableJobOutcome
from shared.errors import LeaseLost, Unsupported
from shared.formats.iceberg.metadata import TableHead
from shared.jobs.payload import SET_PROPERTIES
from shared.jobs.property_options import ALREADY_SET, PropertyOptions
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin
from tests.support.iceberg_store import IcebergStore
from tests.support.local_vacuum import Control

VALUES = {"lakewright.fan-in": "4", "lakewright.tolerance": "0.1"}
JOB = TableJob(
    SET_PROPERTIES, "s3://lake/t", Policy(), CommitOrigin("job", 7), options=PropertyOptions(VALUES).encode()
)


class Table:
    """A table with these properties."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.store = IcebergStore()
        self.store.commit()
        self.properties = dict(properties)
        self.changes: list[dict[str, str]] = []

    def refresh(self) -> TableHead:
        head = self.store.refresh()
        return replace(head, metadata=replace(head.metadata, configuration=dict(self.properties)))

    def set_properties(self, values: Mapping[str, str]) -> None:
        self.changes.append(dict(values))
        self.properties |= values


def run(table: Table, control: Control | None = None, job: TableJob = JOB) -> TableJobOutcome:
    return IcebergPropertiesJob(table, job, control or Control(), lambda _head: None).run()


def test_what_the_table_does_not_have_is_set_in_one_change_and_only_once() -> None:
    table, control = Table({"lakewright.fan-in": "4", "owner": "x"}), Control()
    done = run(table, control)
    assert (done.commits, done.figures, done.reason) == ((), {"changed": 1}, "")
    assert (table.changes, control.changes) == ([{"lakewright.tolerance": "0.1"}], 1)
    again = run(table, control, replace(JOB, policy_digest=policy_digest({})))
    assert (again.figures, again.reason, len(table.changes), control.changes) == ({"changed": 0}, ALREADY_SET, 1, 1)


def test_a_table_whose_owner_changed_its_properties_since_or_that_is_refused_is_left_alone() -> None:
    table = Table({"lakewright.fan-in": "6"})
    done = run(table, job=replace(JOB, policy_digest=policy_digest({})))
    assert "changed since the decision" in done.reason
    assert (done.figures, table.changes) == ({}, [])

    def refuse(_head: TableHead) -> None:
        raise Unsupported("no", field="x")

    with pytest.raises(Unsupported):
        IcebergPropertiesJob(table, JOB, Control(), refuse).run()
    assert table.changes == []


def test_nothing_is_changed_without_the_lease() -> None:
    table, control = Table({}), Control()

    def lost(_change: int) -> None:
        raise LeaseLost("another actor has the job")

    control.before_change = lost
    with pytest.raises(LeaseLost):
        run(table, control)
    assert table.changes == []
