"""What jobs on a whole Delta table get of the actor's settings; what they do is tested kind by kind."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.table_jobs import TableJobLimits, TableJobs
from actor.ports import TableJob
from actor.vacuum.steps import VacuumLimits
from shared.errors import RetryableError
from shared.jobs.payload import CLUSTER, DEDUPLICATE, INDEX
from shared.policy.policy import ClusterMode, Policy
from shared.table import CommitOrigin
from tests.support.fake_delta import FakeScala, FakeSessions, FakeTable
from tests.support.local_vacuum import Control


def job_of(kind: str, policy: Policy = Policy()) -> TableJob:  # noqa: B008 - frozen
    return TableJob(kind, "file:///t", policy, CommitOrigin("j", 1))


@pytest.fixture
def jobs() -> TableJobs:
    table = FakeTable()
    scala, sessions = cast("Any", FakeScala(table)), cast("Any", FakeSessions(table))
    return TableJobs(
        scala, sessions, cast("Any", None), TableJobLimits(VacuumLimits(), reserved_disk_bytes=11), cast("Any", None)
    )


@pytest.mark.parametrize(("kind", "runner"), [(CLUSTER, "StatementJob"), (DEDUPLICATE, "Deduplication")])
def test_a_job_that_writes_files_leaves_as_much_space_free_as_the_actor_is_set_to(
    monkeypatch: pytest.MonkeyPatch, jobs: TableJobs, kind: str, runner: str
) -> None:
    seen: list[object] = []

    def made(*parts: object) -> Any:
        seen.append(parts[-1])
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr(f"actor.formats.delta.table_jobs.{runner}", made)
    jobs.run(job_of(kind), Control())
    assert seen == [11]


@pytest.mark.parametrize(
    ("job", "runner"), [(job_of(CLUSTER, Policy(cluster=ClusterMode.CELLS)), "CellJob"), (job_of(INDEX), "IndexJob")]
)
def test_so_does_one_that_rewrites_in_rounds(
    monkeypatch: pytest.MonkeyPatch, jobs: TableJobs, job: TableJob, runner: str
) -> None:
    seen: list[Any] = []

    def made(table: Any, *_: object) -> Any:
        seen.append(getattr(table, "table", table))
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr(f"actor.formats.delta.table_jobs.{runner}", made)
    jobs.run(job, Control())
    assert [table.reserved_disk_bytes for table in seen] == [11]


def test_a_kind_that_only_another_release_knows_is_tried_again_elsewhere(jobs: TableJobs) -> None:
    with pytest.raises(RetryableError, match="upgrade the actors"):
        jobs.run(job_of("weave"), Control())
