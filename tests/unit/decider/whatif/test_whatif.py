"""What-if: the cheapest policy is found, a change has to pay, a log is read as others wrote it."""

import asyncio
import posixpath
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from decider.api.routes.what_if import what_if_view
from decider.formats.delta.table import DeltaTable
from decider.state.effective_policy import resolve_unregistered
from decider.whatif.comparison import (
    STEPS_OF_COMPARISON,
    STEPS_OF_RECOMMENDATION,
    CostModel,
    Recommendation,
    compare,
    recommend,
)
from decider.whatif.examination import WhatIfReport, examine
from decider.whatif.simulator import replay_untouched
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace, read_history
from shared.errors import InvalidInput, NoTable
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import GIB, KIB, MIB, Policy
from shared.table import Commit, CommitOrigin, DataFile, RemovedFile, Snapshot, TableMetadata, TableProtocol

if TYPE_CHECKING:
    from decider.formats.delta.log import DeltaLog
    from decider.storage.object_reads import ObjectReader

MINUTE_MS = 60_000


def stream(commits: int, size: int = MIB) -> CommitTrace:
    return CommitTrace(
        (), tuple(Commit(n, n * MINUTE_MS, "WRITE", (DataFile(f"f{n}", size, WHOLE_TABLE),)) for n in range(commits))
    )


def test_a_comparison_holds_every_rule_and_says_what_it_is_at() -> None:
    stated: list[str] = []
    found = compare(stream(200), Policy(target_bytes=32 * MIB), CostModel(), stated.append)
    assert len(stated) == STEPS_OF_COMPARISON
    assert found.ours.files_at_end < found.nothing.files_at_end == 200
    assert {done.name for done in found.peers} >= {"delta_optimize_each", "iceberg_defaults", "amoro", "raw_mse"}


def test_the_recommendation_is_the_cheapest_of_all_that_was_tried() -> None:
    history, policy, prices, stated = stream(400), Policy(target_bytes=32 * MIB), CostModel(), []
    nothing = replay_untouched(history, policy, tail_ms=prices.tail_ms)
    found = recommend(history, policy, prices, nothing, stated.append)
    assert found.is_change
    assert found.best.cost_s == min(option.cost_s for option in found.tried)
    assert "lakewright.target-file-size=" in found.message
    assert [option.policy.target_bytes for option in found.curve] == sorted(
        {32 * MIB, *(MIB << n for n in range(5, 11))}
    )
    assert len(stated) == len(found.tried) <= STEPS_OF_RECOMMENDATION
    again = recommend(history, found.best.policy, prices, nothing)
    assert not again.is_change
    assert "Keep the policy" in again.message


def advice(history: CommitTrace, policy: Policy, prices: CostModel) -> Recommendation:
    return recommend(history, policy, prices, replay_untouched(history, policy, tail_ms=prices.tail_ms))


@pytest.mark.parametrize("queries_per_hour", [0, 0.001, 0.01])
def test_a_table_that_no_one_reads_is_best_left_alone_and_nothing_else_is_set(queries_per_hour: float) -> None:
    found = advice(stream(200), Policy(), CostModel(queries_per_hour=queries_per_hour))
    assert "Leave this table alone" in found.message
    assert found.properties == {"lakewright.enabled": "false"}
    assert found.best.cost_s == found.nothing_cost_s < found.current.cost_s


def test_a_table_that_is_switched_off_is_switched_on_only_where_that_pays() -> None:
    off = Policy(enabled=False)
    found = advice(stream(200), off, CostModel(queries_per_hour=1_000))
    assert found.properties["lakewright.enabled"] == "true"
    assert found.current.cost_s == found.nothing_cost_s > found.best.cost_s
    unread = advice(stream(200), off, CostModel(queries_per_hour=0))
    assert (unread.properties, unread.is_change) == ({}, False)
    assert "Leave this table alone, as it is" in unread.message


@pytest.mark.parametrize(("present", "advised"), [(GIB, "512MiB"), (128 * MIB, "64MiB")])
def test_of_targets_that_cost_the_same_the_nearest_to_the_present_one_is_recommended(
    present: int, advised: str
) -> None:
    fixed = Policy(target_bytes=present, fits_levels=False)
    found = advice(stream(60, 4 * KIB), fixed, CostModel(queries_per_hour=1_000))
    least_s = min(one.cost_s for one in found.curve)
    assert sum(one.cost_s == least_s for one in found.curve) == 4
    assert found.properties["lakewright.target-file-size"] == advised
    assert "256 MiB" in found.message
    assert "costs the same" in found.message


def test_of_a_target_that_is_chosen_no_other_is_advised() -> None:
    found = advice(stream(60, 4 * KIB), Policy(target_bytes=GIB, fits_target=True), CostModel(queries_per_hour=1_000))
    assert {one.policy.target_bytes for one in found.tried} == {GIB}
    assert "lakewright.target-file-size" not in found.properties


def test_more_readers_never_ask_for_smaller_files() -> None:
    history, policy = stream(300), Policy()
    few, many = (advice(history, policy, CostModel(queries_per_hour=q)) for q in (0.05, 5_000))
    cheapest = [min(found.curve, key=lambda option: option.cost_s).policy.target_bytes for found in (few, many)]
    assert cheapest[0] <= cheapest[1]


@dataclass
class Log:
    """A log in memory; versions below `oldest` cannot be rebuilt, commits below `kept` and `holes` are gone."""

    history: tuple[Commit, ...]
    oldest: int = 0
    kept: int = 0
    location: str = "memory:///t"
    holes: frozenset[int] = frozenset()

    async def commits(self, versions: range, metadata: TableMetadata) -> AsyncGenerator[Commit, None]:
        for version in versions:
            if version < len(self.history):
                yield self.history[version]

    async def versions_after(self, version: int) -> tuple[int, ...]:
        wanted = range(max(version + 1, self.kept), len(self.history))
        return tuple(number for number in wanted if number not in self.holes)

    def check_place(self) -> None:
        """Nothing is outside."""

    async def snapshot(self, version: int | None = None) -> Snapshot:
        version = len(self.history) - 1 if version is None else version
        if not self.history:
            raise NoTable("there is no Delta log", field="location")
        if version < self.oldest:
            raise InvalidInput("the log was cleaned up", field="version")
        live: dict[object, DataFile] = {}
        for commit in self.history[: version + 1]:
            for gone in commit.removed:
                live.pop((posixpath.normpath(gone.path), gone.dv_id), None)
            live.update(((posixpath.normpath(file.path), file.dv_id), file) for file in commit.added)
        metadata = TableMetadata("t", (), {"lakewright.target-file-size": "1mb"})
        return Snapshot(version, 0, metadata, TableProtocol(1, 2), tuple(live.values()))


async def _read(log: Log, **more: Any) -> TableTrace:
    return await read_history(DeltaTable(cast("DeltaLog", log), cast("ObjectReader", None)), **more)


def file(name: str, size: int = 100 * KIB, **more) -> DataFile:
    return DataFile(name, size, WHOLE_TABLE, **more)


def gone(name: str, **more) -> RemovedFile:
    return RemovedFile(name, **more)


LOG = (
    Commit(0, 0, "CREATE TABLE"),
    Commit(1, 1, "WRITE", (file("a"), file("b"))),
    Commit(2, 2, "WRITE", (file("c"),)),
    Commit(3, 3, "OPTIMIZE", (file("ab", 200 * KIB),), (gone("a"), gone("b")), data_change=False),
    Commit(4, 4, "OPTIMIZE", (file("abc", 300 * KIB),), (gone("ab"), gone("c")), origin=CommitOrigin("j", 1)),
    Commit(5, 5, "DELETE", (file("abc", 300 * KIB, dv_id="v", deleted_rows=1),), (gone("abc"),)),
    Commit(6, 6, "WRITE", (file("d"),)),
)


def test_rewrites_in_the_log_are_left_out_and_counted() -> None:
    found = asyncio.run(_read(Log(LOG)))
    assert [commit.version for commit in found.history.commits] == [1, 2, 6]
    assert (found.rewrites, found.bytes_rewritten, found.files_now) == (2, 500 * KIB, 2)
    assert found.history.bytes_added == 400 * KIB


def test_a_removal_of_a_rewritten_file_is_traced_to_what_was_written() -> None:
    log = (*LOG[:5], Commit(5, 5, "WRITE", (), (gone("abc"),)))
    removal = asyncio.run(_read(Log(log))).history.commits[-1]
    assert [one.path for one in removal.removed] == ["a", "b", "c"]


@pytest.mark.parametrize("oldest", range(6))
def test_reading_begins_at_the_oldest_version_that_can_be_rebuilt(oldest: int) -> None:
    assert asyncio.run(_read(Log(LOG, oldest))).first_version == oldest


def test_the_first_commit_of_a_table_is_part_of_its_history() -> None:
    found = asyncio.run(_read(Log((Commit(0, 0, "WRITE", (file("a"), file("b"))), *LOG[2:3]))))
    assert [commit.version for commit in found.history.commits] == [0, 2]
    assert (found.history.initial, found.history.files_added, found.files_now) == ((), 3, 3)


def test_only_the_newest_commits_are_read_where_there_are_too_many() -> None:
    assert asyncio.run(_read(Log(LOG), max_commits=2)).first_version == 4


@pytest.mark.parametrize("other", ["x/../a", "./a", "a"])
def test_a_file_that_is_removed_under_another_spelling_is_gone(other: str) -> None:
    log = (*LOG[:2], Commit(2, 2, "DELETE", (), (gone(other),)), Commit(3, 3, "WRITE", (file("c"),)))
    found = asyncio.run(_read(Log(log)))
    assert found.files_now == 2
    assert [one.path for one in found.history.commits[1].removed] == ["a"]
    ended = replay_untouched(found.history, Policy(), tail_ms=0)
    assert ended.files_at_end == 2


def test_a_rewritten_file_is_traced_under_any_spelling() -> None:
    log = (*LOG[:2], Commit(2, 2, "OPTIMIZE", (file("./ab"),), (gone("./a"), gone("x/../b")), data_change=False))
    found = asyncio.run(_read(Log((*log, Commit(3, 3, "DELETE", (), (gone("ab"),))))))
    assert [one.path for one in found.history.commits[-1].removed] == ["a", "b"]
    assert (found.files_now, found.rewrites) == (0, 1)


def test_a_removal_of_what_is_not_live_and_an_add_of_what_is_change_nothing() -> None:
    log = (
        *LOG[:2],
        Commit(2, 2, "WRITE", (file("./a"),)),
        Commit(3, 3, "DELETE", (), (gone("a", dv_id="another"), gone("stranger"))),
        Commit(4, 4, "DELETE", (), (gone("b"),)),
        Commit(5, 5, "DELETE", (), (gone("b"),)),
    )
    found = asyncio.run(_read(Log(log)))
    assert (found.files_now, found.history.files_added) == (1, 2)
    assert [commit.version for commit in found.history.commits] == [1, 4]


@pytest.mark.parametrize(("holes", "first"), [({2}, 3), ({1, 4}, 5), ({2, 3}, 4)])
def test_nothing_is_replayed_across_a_hole_in_the_log_and_the_hole_is_named(holes: set[int], first: int) -> None:
    found = asyncio.run(_read(Log(LOG, holes=frozenset(holes))))
    assert found.first_version == first
    assert found.missing == (min(h for h in holes if set(range(h, first)) <= holes), first - 1)
    assert all(commit.version > first for commit in found.history.commits)
    (note,) = describe(examine(found, resolve_unregistered(Policy(), {}, {}), CostModel()))["notes"]
    assert "missing from the log" in note
    assert f"at version {first}" in note


def test_a_replay_that_ends_with_other_files_than_the_table_has_is_reported() -> None:
    """A commit that was damaged below a checkpoint: readers of the table see the file that the commit lost."""

    @dataclass
    class Damaged(Log):
        async def commits(self, versions: range, metadata: TableMetadata) -> AsyncGenerator[Commit, None]:
            async for commit in Log.commits(self, versions, metadata):
                yield replace(commit, added=()) if commit.version == 2 else commit

    found = asyncio.run(_read(Damaged(LOG[:3])))
    assert found.files_now == 3
    (note,) = describe(examine(found, resolve_unregistered(Policy(), {}, {}), CostModel()))["notes"]
    assert note.startswith("The commits lead to 2 files of 204,800 bytes, and the table has 3 of 307,200")
    assert asyncio.run(_read(Log(LOG[:3]))).contradiction == ""


def test_a_log_without_writes_is_refused_with_a_reason() -> None:
    with pytest.raises(InvalidInput, match="no commit from version 0"):
        asyncio.run(_read(Log(LOG[:1])))


def describe(found: WhatIfReport) -> dict:
    return what_if_view(found).model_dump(mode="json")


def report(configuration: dict[str, str], stated: dict[str, str] | None = None, default: Policy | None = None) -> dict:
    table = TableTrace("memory:///t", 0, 199, TableMetadata("t", (), configuration), stream(200), 0, 0, 200)
    in_force = resolve_unregistered(default or Policy(), configuration, {})
    return describe(examine(table, in_force, CostModel(), stated))


def rule(described: dict, name: str) -> dict:
    return next(one for one in described["rules"] if one["name"] == name)


@pytest.mark.parametrize("kept", [6, 7])
def test_of_a_log_that_was_cleaned_up_to_its_end_the_live_files_are_reported(kept: int) -> None:
    with pytest.raises(
        InvalidInput, match=r"cleaned up.* version 6.*2 live files of 409,600 bytes in all.*dry run"
    ) as refused:
        asyncio.run(_read(Log(LOG, oldest=6, kept=kept)))
    assert "written to again" in str(refused.value)


def test_where_there_is_no_log_at_all_that_is_reported() -> None:
    with pytest.raises(NoTable, match="there is no Delta log"):
        asyncio.run(_read(Log(())))


def test_a_report_is_made_under_the_tables_own_policy() -> None:
    described = report({"lakewright.target-file-size": "1mb"}, default=Policy(target_bytes=GIB))
    assert described["policy"]["target_bytes"] == MIB
    assert described["rules"][0]["title"] == "left alone"
    assert described["recommendation"]["message"].endswith(".")
    assert (described["custom"], described["notes"]) == (None, [])


def test_settings_are_replayed_beside_the_tables_own_policy() -> None:
    described = report({}, {"target-file-size": "8MiB", "lakewright.fan-in": "4"})
    same = report({"lakewright.target-file-size": "8MiB", "lakewright.fan-in": "4"})
    yours, theirs = rule(described, "custom"), rule(same, "lakewright")
    assert {**yours, "name": "", "title": ""} == {**theirs, "name": "", "title": ""}
    assert yours["jobs"] != rule(described, "lakewright")["jobs"]
    assert described["custom"]["properties"] == {"lakewright.target-file-size": "8MiB", "lakewright.fan-in": "4"}
    assert (described["custom"]["fan_in"], described["custom"]["cost_s"]) == (4, yours["cost_s"])
    assert described["policy"]["fan_in"] == 8


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("fan-in", "banana", "lakewright.fan-in = 'banana' cannot be used"),
        ("banana", "4", "unknown property; docs/properties.md lists all"),
        ("delta.banana", "4", "delta.banana: unknown property; docs/properties.md lists all"),
        ("target-fil-size", "4mb", "unknown property; did you mean lakewright.target-file-size\\?"),
        ("retain-hours", "4", "use lakewright.retain"),
        ("full-file-threshold", "0.25", "must exceed 1/fan-in"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_with_the_reason(name: str, value: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        report({"lakewright.fan-in": "4"}, {name: value})


def test_a_report_says_what_a_filter_that_moves_was_at_the_last_commit() -> None:
    told = report({"lakewright.filter": "dt >= current_date - 7 days"})["notes"]
    (note,) = (one for one in told if "moves with the time" in one)
    assert "at the last of them, lakewright.filter = dt >= current_date - 7 days is now dt >= date '" in note
    notes = report({"lakewright.filter": "dt >= '2026-01-01'"}, {"lakewright.filter": "dt < current_date"})["notes"]
    assert sum("moves with the time" in one for one in notes) == 1


def test_what_holds_in_production_and_not_in_a_replay_is_reported() -> None:
    unusable, fitted = report({"lakewright.target-file-size": "banana"})["notes"]
    assert "lakewright.target-file-size = banana cannot be used" in unusable
    assert "fitted the size levels once, in the end to new files of " in fitted
    off = report({"lakewright.enabled": "false"})
    assert "as if it were switched on" in off["notes"][0]
    assert rule(off, "lakewright")["jobs"] > 0
    assert off["recommendation"]["current_cost_s"] == rule(off, "no_compaction")["cost_s"]
    weight, _, ratio = report({"lakewright.weight": "2"}, {"delete-ratio-threshold": "0.2"})["notes"]
    assert "lakewright.weight is not replayed" in weight
    assert "lakewright.delete-ratio-threshold is not replayed" in ratio


def test_another_fan_in_is_replayed_with_the_levels_that_it_fixes() -> None:
    found = advice(stream(200), Policy(), CostModel())
    tried = {one.policy.fan_in: one.policy.fits_levels for one in found.tried}
    assert tried == {4: False, 8: True, 16: False}
