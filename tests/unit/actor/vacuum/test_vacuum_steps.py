"""What vacuums of all formats share."""

import pytest

from actor.ports import TableJob
from actor.vacuum.steps import DeletionPace, as_of_ms, switched_off
from shared.jobs.payload import VACUUM
from shared.jobs.vacuum_options import VacuumOptions
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin, TableMetadata


def test_the_retention_counts_from_the_earliest_of_all_clocks_and_of_the_request() -> None:
    assert as_of_ms(5, VacuumOptions(), 9) == 5
    assert as_of_ms(9, VacuumOptions(), 5) == 5
    assert as_of_ms(9, VacuumOptions(requested_ms=3), 5) == 3


def test_deletions_wait_until_their_mean_rate_is_kept() -> None:
    pauses: list[float] = []
    pace = DeletionPace(0.01, pauses.append)
    pace.keep(1)
    DeletionPace(10.0**12, pauses.append, pace.begun_s).keep(1)
    assert pauses == [pytest.approx(100, rel=0.01)]


def test_an_automatic_vacuum_that_was_switched_off_or_decided_otherwise_is_not_wanted() -> None:
    def reason(configuration: dict[str, str], *, is_requested: bool = False, forced: bool = False) -> str:
        digest = policy_digest({"lakewright.vacuum": "on"})
        job = TableJob(VACUUM, "t", Policy(), CommitOrigin("job", 1), even_if_disabled=forced, policy_digest=digest)
        options = VacuumOptions(requested_ms=1 if is_requested else None)
        return switched_off(job, TableMetadata("u", (), configuration), options)

    assert reason({"lakewright.vacuum": "on"}) == ""
    assert "switch the vacuum off" in reason({"lakewright.vacuum": "off"})
    assert "switch the vacuum off" in reason({"lakewright.enabled": "false", "lakewright.vacuum": "on"})
    assert "changed since" in reason({"lakewright.vacuum": "on", "lakewright.retain": "9 days"})
    assert reason({"lakewright.vacuum": "off"}, is_requested=True, forced=True) == ""
