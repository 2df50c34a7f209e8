"""The one loop that deletes a vacuum's files, whatever the format: nothing that is needed, young, or another's goes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from actor.ports import TableJob
from actor.vacuum.deletion import FIGURES, BatchDeletion, DueFile, PresentFile
from actor.vacuum.steps import DeletionPace, VacuumLimits, VacuumStopped, as_of_ms, switched_off
from shared.errors import LeaseLost
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin, TableMetadata
from tests.support.local_vacuum import Control

FILES = [*map(DueFile, "abcd"), DueFile("e", is_orphan=True)]


@dataclass
class Target:
    """Files by their sizes; `calls` has what was asked, in order, and `at` happens at one of them."""

    files: dict[str, PresentFile] = field(default_factory=lambda: {one.name: PresentFile(10) for one in FILES})
    needed: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    at: Callable[[str], object] = lambda _: None

    def _called(self, call: str) -> None:
        self.calls.append(call)
        self.at(call)

    def present(self, batch: Sequence[DueFile]) -> Mapping[str, PresentFile]:
        found = {file.name: self.files[file.name] for file in batch if file.name in self.files}
        self._called("present " + "".join(file.name for file in batch))
        return found

    def catch_up(self) -> None:
        self._called("catch_up")

    def needs(self, file: DueFile) -> bool:
        return file.name in self.needed

    def delete(self, names: Sequence[str]) -> None:
        self._called("delete " + "".join(names))
        for name in names:
            del self.files[name]


def run(target: Target, control: Control | None = None, **given: object) -> Counter[str]:
    figures = Counter(dict.fromkeys(FIGURES, 0))
    job = TableJob(VACUUM, "t", Policy(), CommitOrigin("job", 7))
    limits = VacuumLimits(batch=2, files_per_s=10**9)
    settings: dict[str, object] = {"limits": limits, **given}
    deletion = BatchDeletion(target, job, control or Control(), figures, **settings)  # type: ignore[arg-type]
    try:
        deletion.run(FILES)
    except VacuumStopped:
        figures["stopped"] += 1
    return figures


def test_the_store_is_asked_for_a_batch_then_what_is_new_is_read_then_it_goes_and_at_last_once_more() -> None:
    target, control = Target(), Control()
    figures = run(target, control)
    batches = (["present " + names, "catch_up", "delete " + names] for names in ("ab", "cd", "e"))
    assert target.calls == [*(call for batch in batches for call in batch), "catch_up"]
    assert [one for one in control.points if one[0] == "deleting"] == [("deleting", done, 5) for done in (0, 2, 4)]
    assert control.changes == 3, "the lease is asked before each batch"
    assert (figures["files_planned"], figures["files_deleted"], figures["bytes_freed"]) == (5, 5, 50)
    assert (figures["orphan_files_deleted"], figures["orphan_bytes_freed"]) == (1, 10)


def test_what_became_needed_while_the_store_was_asked_stays_and_so_does_what_is_young_again() -> None:
    target = Target()
    target.files["d"] = PresentFile(10, is_young=True)
    del target.files["c"]
    target.at = lambda call: target.needed.update("be") if call == "present ab" else None
    figures = run(target)
    assert target.files.keys() == {"b", "d", "e"}
    found = {name: figures[f"files_{name}"] for name in ("deleted", "live_again", "missing", "too_young")}
    assert found == {"deleted": 1, "live_again": 2, "missing": 1, "too_young": 1}


@pytest.mark.parametrize("call", ["delete ab", "delete e"])
def test_files_that_became_live_in_the_moment_of_their_deletion_are_counted_and_named(call: str) -> None:
    target = Target()
    target.at = lambda found: target.needed.update(call.split()[1]) if found == call else None
    with capture_logs() as logged:
        figures = run(target)
    (named,) = [one["files"] for one in logged if one["event"] == "vacuum_deleted_live_files"]
    assert named == list(call.split()[1])
    assert figures["files_deleted_and_live"] == len(named)


def test_a_run_that_is_to_stop_ends_between_two_batches() -> None:
    control = Control()
    control.stop_after = 2
    target = Target()
    assert (run(target, control)["stopped"], target.files.keys()) == (1, {"e"})


@pytest.mark.parametrize("time", [1, 2, 4])
def test_a_table_that_is_another_one_now_ends_the_run_even_after_the_last_batch(time: int) -> None:
    """Its end is marked only in the history that the run was planned for."""
    target = Target()

    def stop(call: str) -> None:
        if call == "catch_up" and target.calls.count("catch_up") == time:
            raise VacuumStopped("its properties changed")

    target.at = stop
    assert run(target)["stopped"] == 1
    assert len(target.files) == [5, 3, 0][[1, 2, 4].index(time)]


def test_nothing_is_deleted_without_the_lease() -> None:
    control, target = Control(), Target()

    def lose(count: int) -> None:
        if count == 2:
            raise LeaseLost("gone")

    control.before_change = lose
    with pytest.raises(LeaseLost):
        run(target, control)
    assert target.files.keys() == {"c", "d", "e"}


def test_deletions_keep_to_their_rate() -> None:
    pauses: list[float] = []
    run(Target(), limits=VacuumLimits(batch=3, files_per_s=0.001), pause=pauses.append)
    assert pauses == [pytest.approx(seconds, rel=0.01) for seconds in (3_000, 5_000)]


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
