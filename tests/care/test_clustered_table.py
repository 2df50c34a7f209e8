"""Tables with CLUSTER BY on real Delta: its own OPTIMIZE runs when that is due, and no rewrite of ours touches them."""

import asyncio
import random
from statistics import mean

import pyarrow.parquet as pq
import pytest

from actor.formats.delta.engine import DeltaEngine
from actor.ports import TableJob, TableJobOutcome
from decider.storage.object_reads import ReadMeter
from shared.errors import Unsupported
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import CHECKPOINT, VACUUM
from shared.layout.clustered_files import ClusteredFiles
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import KIB, ClusterMode, Policy
from shared.table import CommitOrigin
from tests.support.aged_table import DAY_MS, age, forget_logs, now_ms, versions
from tests.support.clustered_table import POLICY, ClusteredTable, batch
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import commit_info, open_own_commits
from tests.support.local_vacuum import Control
from tests.support.sorted_table import read_by_spark

pytestmark = pytest.mark.spark

COMMITS = 200
PERIODS = (8, 12, 16)
"""Commits between two runs of a schedule: the first bounds the share that is unclustered as the rule does, the second
leaves as small a share on average, and the last has about as many runs."""

SETTLED = 40
"""Commits after which eight files are a fifth of the table, which is what the rule leaves unclustered from there on."""

FILE_BYTES = 64 * KIB
WIDTH = 1_000
"""Width of the ranges that are read: 0.1% of the keys."""


def test_a_schedule_that_leaves_as_small_a_share_unclustered_needs_more_runs_and_rewrites_more_bytes(
    lab: DeltaLab, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, schedules = ClusteredTable(lab, "ours"), {at: ClusteredTable(lab, f"every-{at}") for at in PERIODS}
    dice, state, file = random.Random(8), ClusteredFiles(), lab.directory / "rows.parquet"
    policy = Policy(cluster=ClusterMode.ON, target_bytes=FILE_BYTES).with_traits(is_clustered=True)
    for at in range(COMMITS):
        pq.write_table(batch(dice, at), file)
        for table in (ours, *schedules.values()):
            table.append(file)
        state = state.plus(file.stat().st_size, is_cube=False)
        if state.need(policy).is_due:
            done = ours.run(policy=policy)
            assert done.commits
            assert commit_info(ours.path, done.commits[0])["operation"] == "OPTIMIZE"
        else:
            assert not ours.files().need(policy).is_due
        state = ours.files()
        for period, table in schedules.items():
            if (at + 1) % period == 0:
                table.optimize(FILE_BYTES)
        for table in (ours, *schedules.values()):
            table.note(WIDTH)
    before = lab.digest(str(ours.path))
    assert all(lab.digest(str(table.path)) == before for table in schedules.values())
    worst, usual, read = dict[str, float](), dict[str, float](), dict[str, float]()
    with capsys.disabled():
        print(f"\n{COMMITS} commits, {len(ours.live())} files at the end; means are over all commits:")
        for table in (ours, *schedules.values()):
            name = table.path.name
            worst[name], usual[name] = max(table.shares[SETTLED:]), mean(table.shares)
            read[name] = mean(share for _, share in table.reads)
            print(
                f"  {name}: {table.runs} runs, {table.rewritten_bytes:,} rewritten; {usual[name]:.1%} unclustered,"
                f" from commit {SETTLED} at most {worst[name]:.1%}; a range reads {read[name]:.1%} of the bytes in"
                f" {mean(files for files, _ in table.reads):.1f} files, at the end in {table.reads[-1][0]:.1f}"
            )
    # What is counted by the log is what Spark reads by its own metric.
    assert read_by_spark(lab, str(ours.path), "k", WIDTH) == ours.reads[-1][0]
    assert worst["ours"] <= 0.2
    bounded = [table for table in schedules.values() if worst[table.path.name] <= worst["ours"] + 0.03]
    alike = [table for table in schedules.values() if usual[table.path.name] <= usual["ours"]]
    assert 0 < len(bounded) < len(schedules)
    assert 0 < len(alike) < len(schedules)
    assert all(
        ours.runs <= table.runs * 0.6 and ours.rewritten_bytes <= table.rewritten_bytes * 0.6 for table in bounded
    )
    assert all(ours.runs < table.runs and ours.rewritten_bytes <= table.rewritten_bytes * 0.7 for table in alike)
    # Ranges read more files than with the schedules: a table that is written evenly is best clustered at even times.
    assert all(ours.rewritten_bytes < table.rewritten_bytes for table in schedules.values())
    assert all(read["ours"] <= read[table.path.name] * 1.2 for table in schedules.values())


def test_a_run_is_recorded_and_asks_the_rule_again_and_exact_rewrites_are_refused(
    lab: DeltaLab, engine: DeltaEngine
) -> None:
    table = ClusteredTable(lab, "t")
    policy = Policy(cluster=ClusterMode.ON, target_bytes=512 * KIB).with_traits(is_clustered=True)
    for at in range(9):
        rows = ", ".join(f"({at * 50 + n}, {n}, '{n}')" for n in range(50))
        lab.sql(f"INSERT INTO {table.name} VALUES {rows}")
    before, written = lab.digest(str(table.path)), len(table.live())
    done = table.run(policy=policy)
    assert done.figures["files_replaced"] == written
    assert table.files().unclustered_files == 0
    assert lab.digest(str(table.path)) == before
    lab.sql(f"INSERT INTO {table.name} VALUES (1, 1, 'late')")
    assert "few_unclustered_files" in table.run(policy=policy).reason
    assert table.run(policy=policy, force=True).commits
    assert "nothing_unclustered" in table.run(policy=policy, force=True).reason
    history = open_own_commits(table.path.as_uri(), meter=ReadMeter())
    events = asyncio.run(history.page(limit=10)).events
    assert [(event.mark.mode, event.mark.origin.job) for event in events] == [("cluster", "job")] * 2
    with pytest.raises(Unsupported, match="clustering"):
        engine.read_partition(table.path.as_uri(), WHOLE_TABLE)


def test_what_others_do_right_before_the_statement_is_clustered_with_the_rest(lab: DeltaLab) -> None:
    table = ClusteredTable(lab, "t")
    dice, file = random.Random(1), lab.directory / "rows.parquet"
    for at in range(9):
        pq.write_table(batch(dice, at), file)
        table.append(file)
    control = Control()

    def others(_change: int) -> None:
        lab.sql(f"DELETE FROM {table.name} WHERE n % 10 = 3")
        lab.sql(f"INSERT INTO {table.name} VALUES (5, -1, 'late'), (6, -2, 'later')")

    control.before_change = others
    done = table.run(control=control)
    assert len(done.commits) == 1
    numbers = sorted(row[0] for row in lab.sql(f"SELECT n FROM {table.name}"))
    assert numbers == [-2, -1, *(n for n in range(9 * 250) if n % 10 != 3)]
    assert table.files().unclustered_files == 0


def test_a_vacuum_and_a_checkpoint_of_a_clustered_table_keep_its_rows(lab: DeltaLab) -> None:
    table = ClusteredTable(lab, "t")
    dice, file = random.Random(1), lab.directory / "rows.parquet"
    for at in range(8):  # The tenth commit would have Delta write a checkpoint.
        pq.write_table(batch(dice, at), file)
        table.append(file)
    table.run()
    before = lab.digest(str(table.path))
    age(table.path, dict.fromkeys(versions(table.path), now_ms() - 20 * DAY_MS))
    forget_logs(lab.spark)

    def job(kind: str, **options: int) -> TableJobOutcome:
        made = TableJob(kind, table.path.as_uri(), POLICY, CommitOrigin("job", 8), options=options)
        return lab.engine.run_table_job(made, Control())

    assert job(CHECKPOINT).figures["written"] == 1
    assert job(VACUUM, **VacuumOptions(with_orphans=True).encode()).figures["files_deleted"] == 8
    assert lab.digest(str(table.path)) == before
    assert len(table.live()) == len(list(table.path.glob("*.parquet")))
