"""Jobs on manifests and on properties count again, ask before each commit, and say what they did."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from actor.formats.iceberg.manifests_job import NOTHING, ManifestsJob
from actor.formats.iceberg.properties_job import IcebergPropertiesJob
from actor.ports import TableJob, TableJobOutcome
from shared.errors import Conflict, LeaseLost, Unsupported
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import COMMIT_KEY
from shared.formats.iceberg.positions import newest_position
from shared.jobs.options import ALREADY_SET, PropertyOptions
from shared.jobs.payload import SET_PROPERTIES
from shared.layout import commit_metadata
from shared.layout.upkeep import REWRITE_MANIFESTS, UpkeepFound
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin
from tests.support.iceberg_store import IcebergStore
from tests.support.java_errors import JavaError
from tests.support.local_vacuum import Control

JOB = TableJob(REWRITE_MANIFESTS.kind, "s3://lake/t", Policy(), CommitOrigin("job", 7))
MANY, FEW = UpkeepFound(9, 8, 90), UpkeepFound(1, 0, 90)


class Table:
    """A table with these manifests by spec; each rewrite makes a snapshot, except of a spec that needs none."""

    location = "s3://lake/t"

    def __init__(self, found: Mapping[int, UpkeepFound], *, commits: int = 1) -> None:
        self.store = IcebergStore()
        for _ in range(commits):
            self.store.commit()
        self.found = found
        self.rewritten: list[tuple[int, Mapping[str, str]]] = []
        self.fails: Exception | None = None
        self.needs_none: set[int] = set()

    def refresh(self) -> TableHead:
        return self.store.refresh()

    def manifests(self) -> Mapping[int, UpkeepFound]:
        return self.found

    def rewrite_manifests(self, spec: int, summary: Mapping[str, str]) -> tuple[int, int]:
        if self.fails is not None:
            raise self.fails
        self.rewritten.append((spec, summary))
        if spec in self.needs_none:
            return 0, 0
        self.store.now_ms += 1_000
        self.store.commit(0)
        return self.found[spec].count, self.found[spec].count - self.found[spec].excess


def run(table: Table, control: Control | None = None, job: TableJob = JOB, check: Any = None) -> TableJobOutcome:
    return ManifestsJob(table, job, control or Control(), check or (lambda _head: None)).run()


def test_the_manifests_of_each_spec_with_more_than_it_needs_are_rewritten_in_a_commit_of_the_job() -> None:
    table, control = Table({2: MANY, 0: FEW, 1: MANY}), Control()
    before = newest_position(table.refresh()).version
    done = run(table, control)
    assert [spec for spec, _ in table.rewritten] == [1, 2]
    marks = [commit_metadata.decode(summary[COMMIT_KEY]) for _, summary in table.rewritten]
    assert all(mark is not None and (mark.origin, mark.mode) == (JOB.origin, REWRITE_MANIFESTS.kind) for mark in marks)
    assert (done.figures, control.figures) == ({"replaced": 18, "written": 2}, {"replaced": 18, "written": 2})
    assert (done.version, done.is_complete, done.reason) == (before, True, "")
    assert [before, *done.commits] == sorted({before, *done.commits})
    assert len(done.commits) == 2
    assert (control.changes, control.points) == (2, [("rewriting", 0, 2), ("rewriting", 1, 2)])


def test_where_no_manifest_is_superfluous_nothing_is_done() -> None:
    table, control = Table({0: FEW}), Control()
    assert (run(table, control).reason, table.rewritten, control.changes) == (NOTHING, [], 0)
    assert run(Table({}, commits=0)).reason == NOTHING


def test_a_rewrite_that_iceberg_finds_needless_is_no_commit() -> None:
    table = Table({0: MANY})
    table.needs_none = {0}
    done = run(table)
    assert (done.commits, done.reason, done.figures) == ((), NOTHING, {"replaced": 0, "written": 0})


def test_a_decided_job_is_not_wanted_on_a_table_that_is_switched_off_and_a_requested_one_is() -> None:
    table = Table({0: MANY})
    table.store.configure(lakewright__enabled="false")
    assert "switch it off" in run(table).reason
    assert table.rewritten == []
    assert run(table, job=replace(JOB, even_if_disabled=True)).commits
    changed = run(Table({0: MANY}), job=replace(JOB, policy_digest="of other properties"))
    assert "properties changed" in changed.reason


def test_a_table_that_must_not_be_touched_is_left_alone() -> None:
    table = Table({0: MANY})

    def refuse(_head: TableHead) -> None:
        raise Unsupported("encrypted")

    with pytest.raises(Unsupported, match="encrypted"):
        run(table, check=refuse)
    assert table.rewritten == []


def test_a_lost_lease_stops_before_the_commit_and_a_stop_between_two() -> None:
    table, control = Table({0: MANY, 1: MANY}), Control()

    def lost(_count: int) -> None:
        raise LeaseLost("gone")

    control.before_change = lost
    with pytest.raises(LeaseLost):
        run(table, control)
    assert table.rewritten == []
    control = Control()
    control.stop_after = 1
    done = run(table, control)
    assert (done.is_complete, len(done.commits), [spec for spec, _ in table.rewritten]) == (False, 1, [0])


def test_manifests_that_others_replaced_are_a_conflict_and_an_unknown_outcome_is_raised_as_it_is() -> None:
    table = Table({0: MANY})
    table.fails = JavaError("ValidationException", message="Manifest is missing: m.avro")
    with pytest.raises(Conflict, match="replaced meanwhile"):
        run(table)
    table.fails = JavaError("CommitStateUnknownException", message="no answer")
    with pytest.raises(JavaError, match="no answer"):
        run(table)


VALUES = {"lakewright.fan-in": "4", "lakewright.tolerance": "0.1"}
PROPERTIES_JOB = TableJob(
    SET_PROPERTIES, "s3://lake/t", Policy(), CommitOrigin("job", 7), options=PropertyOptions(VALUES).encode()
)


class PropertiesTable:
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


def run_properties(
    table: PropertiesTable, control: Control | None = None, job: TableJob = PROPERTIES_JOB
) -> TableJobOutcome:
    return IcebergPropertiesJob(table, job, control or Control(), lambda _head: None).run()


def test_what_the_table_does_not_have_is_set_in_one_change_and_only_once() -> None:
    table, control = PropertiesTable({"lakewright.fan-in": "4", "owner": "x"}), Control()
    done = run_properties(table, control)
    assert (done.commits, done.figures, done.reason) == ((), {"changed": 1}, "")
    assert (table.changes, control.changes) == ([{"lakewright.tolerance": "0.1"}], 1)
    again = run_properties(table, control, replace(PROPERTIES_JOB, policy_digest=policy_digest({})))
    assert (again.figures, again.reason, len(table.changes), control.changes) == ({"changed": 0}, ALREADY_SET, 1, 1)


def test_a_table_whose_owner_changed_its_properties_since_or_that_is_refused_is_left_alone() -> None:
    table = PropertiesTable({"lakewright.fan-in": "6"})
    done = run_properties(table, job=replace(PROPERTIES_JOB, policy_digest=policy_digest({})))
    assert "changed since the decision" in done.reason
    assert (done.figures, table.changes) == ({}, [])

    def refuse(_head: TableHead) -> None:
        raise Unsupported("no", field="x")

    with pytest.raises(Unsupported):
        IcebergPropertiesJob(table, PROPERTIES_JOB, Control(), refuse).run()
    assert table.changes == []


def test_nothing_is_changed_without_the_lease() -> None:
    table, control = PropertiesTable({}), Control()

    def lost(_change: int) -> None:
        raise LeaseLost("another actor has the job")

    control.before_change = lost
    with pytest.raises(LeaseLost):
        run_properties(table, control)
    assert table.changes == []
