"""History is told by the log alone: what is ours is found, numbered as the log says, and paged without a gap."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from decider.formats.delta.rewrites import HEAD_BYTES
from decider.formats.rewrites import FileStats, Rewrite, RewritePage, index_fields
from decider.storage.object_reads import ReadKind, ReadMeter
from shared.errors import Corrupt, NoTable
from shared.index.stats import index_stats
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.partition_stats import stats_of_sizes
from shared.policy.levels import build_size_levels
from shared.table import CommitOrigin
from tests.support.delta_tables import open_own_commits

RUNGS = build_size_levels(1_000_000, 8, Fraction(3, 4))
OURS = CommitMetadata(
    CommitOrigin("t.1.compact", 7), partition="{}", round=1, mode="minor", started_ms=1_000, size_levels=RUNGS
)


def remove(path: str, size: int, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "size": size, "dataChange": False, **more}}


def add(path: str, size: int, rows: int | None = None, **more: Any) -> dict[str, Any]:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {"add": {"path": path, "size": size, "dataChange": False, "modificationTime": 1, **stats, **more}}


class Log:
    """Commits written line by line, as any writer might."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = path / "_delta_log"
        self.directory.mkdir(parents=True)
        self.versions = 0
        self.meter = ReadMeter()

    def commit(self, actions: Sequence[Mapping[str, Any]], mark: str | None = None) -> None:
        info = {"timestamp": 1_500 + self.versions, "operation": "OPTIMIZE"}
        lines = [{"commitInfo": info | ({"userMetadata": mark} if mark else {})}, *actions]
        (self.directory / f"{self.versions:020d}.json").write_text("\n".join(map(json.dumps, lines)))
        self.versions += 1

    def ours(self, mark: CommitMetadata = OURS) -> None:
        self.commit([remove("a", 10, stats='{"numRecords":4}'), remove("b", 20), add("c", 25, rows=9)], mark.encode())

    def theirs(self) -> None:
        self.commit([add("x", 10) | {}])

    def page(self, **asked: Any) -> RewritePage:
        opened = open_own_commits(str(self.path), meter=self.meter)
        return asyncio.run(opened.page(**{"limit": 100, **asked}))

    def one(self) -> Rewrite:
        (event,) = self.page().events
        return event


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "t")


def test_an_event_carries_the_figures_of_its_commit(log: Log) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 3}
    actions = [
        remove("a", 700_000, deletionVector=vector, stats='{"numRecords":13}'),
        remove("b", 3, stats='{"numRecords":5}'),
        add("c", 690_000, rows=15),
    ]
    log.commit(actions, OURS.encode())
    event = log.one()
    assert (event.version, event.mark, event.finished_ms, event.process_time_ms) == (0, OURS, 1_500, 500)
    assert (event.inputs.num_files, event.inputs.bytes, event.inputs.rows) == (2, 700_003, 15)
    assert event.inputs.files == ("a", "b")
    assert event.inputs.levels == (1, 0, 0, 0, 0, 1, 0)
    assert (event.outputs.num_files, event.outputs.bytes, event.outputs.rows) == (1, 690_000, 15)
    assert event.deleted_rows == 3
    before, after = stats_of_sizes(RUNGS, [700_000, 3]), stats_of_sizes(RUNGS, [690_000])
    assert event.entropy_removed == before.shortfall - after.shortfall > 0


@pytest.mark.parametrize(("carried", "left_out"), [(2, 1), (3, 0), (4, 0)])
def test_rows_that_stay_hidden_in_the_outputs_were_not_left_out(log: Log, carried: int, left_out: int) -> None:
    hides = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1}
    removed = remove("a", 700_000, deletionVector=hides | {"cardinality": 3}, stats='{"numRecords":13}')
    added = add("c", 690_000, rows=13)
    added["add"]["deletionVector"] = hides | {"cardinality": carried}
    log.commit([removed, added], OURS.encode())
    assert (log.one().deleted_rows, log.one().outputs.rows) == (left_out, 13 - carried)


def blocks(*rows: int) -> dict[str, Any]:
    made = [
        {"cubeId": "A" * at, "minWeight": 0, "maxWeight": 9, "elementCount": count} for at, count in enumerate(rows)
    ]
    return {"tags": {"revision": "1", "blocks": json.dumps(made)}}


def test_a_rewrite_of_an_index_has_the_blocks_of_both_sides(log: Log) -> None:
    mark = replace(OURS, size_levels=None, mode="index", index_input=index_stats([[("", 1_000)], [("", 5), ("A", 3)]]))
    # Levels are those of the paths in order, whatever the order of the removals.
    log.commit(
        [remove("b", 3), remove("a", 7), add("c", 8, 1_005, **blocks(1_005)), add("d", 1, 3, **blocks(0, 3))],
        mark.encode(),
    )
    event = log.one()
    assert event.inputs.index == replace(index_stats([[("", 5), ("A", 3)], [("", 1_000)]]), mean_block_rows=502.0)
    assert (event.inputs.files, event.inputs.index.file_levels) == (("b", "a"), (0, 3))
    assert event.outputs.index == index_stats([[("", 1_005)], [("", 0), ("A", 3)]])
    assert index_fields(event.outputs)["avg_num_blocks_per_file"] == 1.5
    assert index_fields(FileStats(0, 0, 0, None, (), index_stats([])))["avg_num_blocks_per_file"] == 0.0


@pytest.mark.parametrize("tags", [{}, {"tags": None}, {"tags": {"blocks": 3}}, {"tags": {"blocks": "["}}, {"tags": []}])
def test_files_without_blocks_have_no_figures_of_an_index(log: Log, tags: dict[str, Any]) -> None:
    mark = replace(OURS, index_input=index_stats([[("", 5)]]))
    log.commit([remove("a", 7), remove("b", 7), add("c", 8, 10, **blocks(10)), add("d", 8, 10, **tags)], mark.encode())
    event = log.one()
    assert (event.inputs.index, event.outputs.index) == (None, None)
    assert set(index_fields(event.inputs).values()) == {None}


def test_rows_that_removals_do_not_contain_are_those_that_came_out(log: Log) -> None:
    log.ours()
    assert (log.one().inputs.rows, log.one().outputs.rows) == (9, 9)
    log.commit([remove("a", 1), add("b", 1)], OURS.encode())
    newest = log.page().events[0]
    assert (newest.inputs.rows, newest.outputs.rows) == (None, None)


def test_a_commit_of_an_earlier_release_is_ours_with_what_it_tells(log: Log) -> None:
    log.commit([remove("a", 1), add("b", 1)], '{"lakewright":{"job":"j","token":3,"round":2,"mode":"major"}}')
    event = log.one()
    assert (event.mark.write_id, event.mark.mode) == ("j/3/2", "major")
    assert (event.process_time_ms, event.inputs.levels, event.entropy_removed) == (None, None, None)


def test_a_copied_mark_on_a_change_of_data_is_not_ours(log: Log) -> None:
    log.commit([{"remove": {"path": "a", "size": 1, "dataChange": True}}], OURS.encode())
    log.commit([add("a", 1)], OURS.encode())
    log.theirs()
    assert log.page() == RewritePage((), None)


def test_pages_join_to_the_whole_history_whatever_their_size(log: Log) -> None:
    for number in range(60):
        log.ours() if number % 7 == 3 else log.theirs()
    whole = log.page().events
    assert [event.version for event in whole] == [59, 52, 45, 38, 31, 24, 17, 10, 3]
    for asked in ({"limit": 1}, {"limit": 4}, {"limit": 100, "max_scanned": 10}):
        pages, before = [], None
        while True:
            page = log.page(**asked, before=before)
            pages += page.events
            before = page.before
            if before is None:
                break
        assert tuple(pages) == whole, asked


def test_a_page_reads_a_bounded_number_of_commits_and_of_each_its_head(log: Log) -> None:
    for _ in range(50):
        log.theirs()
    (log.directory / "_last_checkpoint").write_text('{"version": 40, "size": 1}')
    assert log.page(max_scanned=20) == RewritePage((), 30)
    # The hint, and twenty commits.
    assert log.meter.counts == {ReadKind.GET: 21, ReadKind.LIST: 1}


def test_a_large_commit_of_ours_is_read_whole(log: Log) -> None:
    files = [remove(f"file-{number:040d}", 1) for number in range(1_000)]
    log.commit([*files, add("out", 1_000, rows=1)], OURS.encode())
    assert (log.directory / f"{0:020d}.json").stat().st_size > 4 * HEAD_BYTES
    assert log.one().inputs.num_files == 1_000


def test_history_ends_where_retention_cut_the_log(log: Log) -> None:
    for _ in range(5):
        log.ours()
    (log.directory / f"{1:020d}.json").unlink()
    page = log.page()
    assert ([event.version for event in page.events], page.before) == ([4, 3, 2], None)


def test_no_log_is_an_error_whatever_page_is_asked_for_and_an_empty_commit_is_no_ones(log: Log) -> None:
    for before in (None, 0, 40):
        with pytest.raises(NoTable, match="there is no Delta log"):
            log.page(before=before)
    (log.directory / f"{0:020d}.json").touch()
    assert log.page() == RewritePage((), None)


def test_a_page_before_a_version_that_is_not_there_yet_begins_at_the_newest(log: Log) -> None:
    log.ours()
    assert log.page(before=40) == log.page()


def test_a_log_of_which_a_checkpoint_is_left_has_no_history_and_is_no_error(log: Log) -> None:
    (log.directory / f"{7:020d}.checkpoint.parquet").touch()
    assert log.page() == log.page(before=3) == RewritePage((), None)


def test_a_damaged_commit_of_ours_is_named_with_its_line(log: Log) -> None:
    log.ours()
    file = log.directory / f"{0:020d}.json"
    file.write_text(file.read_text() + "\n{")
    with pytest.raises(Corrupt, match="line 5"):
        log.page()
