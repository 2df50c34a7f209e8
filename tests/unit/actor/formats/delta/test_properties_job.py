"""When an actor alters a table, and how it learns what became of it; that Spark does so is tested with Spark."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.properties_job import PropertiesJob
from actor.ports import TableJob, TableJobOutcome
from shared.errors import Conflict, LeaseLost, OtherTable, RetryableError
from shared.jobs.payload import SET_PROPERTIES
from shared.jobs.property_options import ALREADY_SET, PropertyOptions
from shared.layout.commit_metadata import decode
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin
from tests.support.fake_delta import FakeScala, FakeSession, FakeSessions, FakeTable
from tests.support.fake_delta_table import METADATA
from tests.support.java_errors import JavaError
from tests.support.local_vacuum import Control

VALUES = {"lakewright.fan-in": "4", "lakewright.tolerance": "0.1"}


class World:
    """A table in memory; the statement commits these properties, then fails if it is to."""

    def __init__(self, configuration: Mapping[str, str] | None = None) -> None:
        self.table = FakeTable()
        self.statements: list[str] = []
        self.fails: Exception | None = None
        self.commits = True
        self.control = Control()
        protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        self.table.commit({"protocol": protocol}, {"metaData": METADATA | {"configuration": dict(configuration or {})}})

    def run(self, **more: Any) -> TableJobOutcome:
        world = self

        class Session(FakeSession):
            def sql(self, statement: str) -> Any:
                world.statements.append(statement)
                if world.commits:
                    mark = {"commitInfo": {"operation": "ALTER", "userMetadata": world.table.user_metadata}}
                    world.table.commit(mark, {"metaData": METADATA | {"configuration": VALUES}})
                if world.fails is not None:
                    raise world.fails
                return SimpleNamespace(collect=list)

        class Sessions(FakeSessions):
            @contextmanager
            def bound(self, _owned: str) -> Iterator[FakeSession]:
                yield Session(world.table)

        options = PropertyOptions(VALUES).encode()
        job = TableJob(SET_PROPERTIES, "file:///lake/t", Policy(), CommitOrigin("j", 1), options=options, **more)
        scala, sessions = cast("Any", FakeScala(self.table)), cast("Any", Sessions(self.table))
        return PropertiesJob(scala, sessions, job, self.control).run()


def test_one_statement_sets_what_the_table_does_not_have_and_its_commit_names_the_job() -> None:
    world = World({"lakewright.fan-in": "4"})
    done = world.run()
    assert world.statements == ["ALTER TABLE delta.`file:///lake/t` SET TBLPROPERTIES ('lakewright.tolerance' = '0.1')"]
    assert (done.version, done.commits, done.figures, done.reason) == (0, (1,), {"changed": 1}, "")
    mark = decode(world.table.user_metadata)
    assert mark is not None
    assert (mark.origin, mark.mode) == (CommitOrigin("j", 1), SET_PROPERTIES)
    assert world.control.changes == 1


def test_a_table_that_has_them_is_not_altered_even_if_they_changed_since_the_decision() -> None:
    """A run that died behind its statement comes again."""
    world = World(VALUES)
    done = world.run(policy_digest=policy_digest({}))
    assert (done.commits, done.figures, done.reason) == ((), {"changed": 0}, ALREADY_SET)
    assert (world.statements, world.control.changes) == ([], 0)


def test_a_table_whose_owner_changed_its_properties_since_is_left_alone() -> None:
    world = World({"lakewright.fan-in": "6"})
    done = world.run(policy_digest=policy_digest({}))
    assert "changed since the decision" in done.reason
    assert (done.figures, world.statements) == ({}, [])
    with pytest.raises(OtherTable):
        world.run(table_uuid="another")
    assert world.statements == []


def test_nothing_is_altered_without_the_lease() -> None:
    world = World()

    def lost(_change: int) -> None:
        raise LeaseLost("another actor has the job")

    world.control.before_change = lost
    with pytest.raises(LeaseLost):
        world.run()
    assert world.statements == []


def test_a_commit_whose_answer_was_lost_is_found_and_one_that_was_not_made_is_not_claimed() -> None:
    world = World()
    world.fails = RuntimeError("connection lost")
    assert world.run().commits == (1,)
    world = World()
    world.commits, world.fails = False, RuntimeError("connection lost")
    with pytest.raises(RetryableError, match=r"no commit of the ALTER TABLE \(RuntimeError: connection lost"):
        world.run()
    world.fails = None
    with pytest.raises(RetryableError, match=r"no commit of the ALTER TABLE$"):
        world.run()
    world.fails = JavaError("Py4JJavaError", "MetadataChangedException")
    with pytest.raises(Conflict, match="MetadataChangedException"):
        world.run()
