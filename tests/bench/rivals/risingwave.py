"""risingwave: an Iceberg table of many small files compacted at once, without deletes and with deletes of both kinds.

Published: 193 GB in 17,358 files became 215 files in 277 s, and in 1,533 s with Spark; 20,000 data files with 20,000
files of positions and 20,000 of keys took 490 to 518 s, and Spark had too little memory. Here a hundredth of the data,
and a hundredth and a tenth of the files with deletes. Each side has a process and a JVM of its own, with the same heap,
and the same files at the same paths.
"""

import argparse
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import duckdb

from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.ports import GroupStatus, RewriteRequest
from shared.jobs.payload import RewriteKind
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import plan_rewrite
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.bench.machine import Limit
from tests.bench.rivals.deleted_table import Rows, case_of, copied, make, read
from tests.bench.rivals.page import Result, markdown
from tests.bench.rivals.process_tree import TreeMeter, children_killed_after
from tests.bench.spark import called_alone, started_spark
from tests.support.go_programs import ICEBERG_GO
from tests.support.iceberg_lab import ice_session
from tests.support.steering import Steering

CASES = ("174", "200+200+200", "2000+2000+2000")
FILE_BYTES = 11_000_000
TARGET_BYTES = 2**30
"""About 80 files become one, as published."""
WARM_UP_FILES = 20
OURS, ENCODED, SPARK, GO = "lakewright", "encoded", "rewrite_data_files", "iceberg-go"

WRONG = "wrong rows"

Compact = Callable[[Path], object]
"""Compacts the table at a path."""


class MissingError(Exception):
    """A side cannot be played on this machine."""


@dataclass(frozen=True, slots=True)
class Setting:
    """`heap`: of each JVM; `limit_s`: seconds after which a side ends without a result."""

    heap: str
    target_bytes: int
    limit_s: float


@dataclass(slots=True)
class Played:
    """One side in one case. Neither the start of Spark nor the small tables that it compacted before are counted.

    `gb`: of all files at the beginning; `note`: why there are no figures.
    """

    case: str
    side: str
    gb: float
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mib: float = 0.0
    files: int = 0
    delete_files: int = 0
    note: str = ""

    @property
    def cpu_s_per_gb(self) -> float:
        return self.cpu_s / self.gb


@contextmanager
def lakewright(folder: Path, setting: Setting, *, may_copy: bool) -> Iterator[Compact]:
    """The engine of an actor, which reads the table, plans a full rewrite, proofreads it and commits."""
    policy = Policy(target_bytes=setting.target_bytes)
    mark = CommitMetadata(CommitOrigin("bench", 1), partition="{}", round=1, mode="full", started_ms=1).encode()
    with started_spark(folder / "spark", driver_memory=setting.heap, iceberg=True) as spark:
        engine = IcebergEngine(spark, IcebergEngineSettings(reads_folders=True))

        def compact(table: Path) -> None:
            location = table.as_uri()
            live = engine.read_partition(location, WHOLE_TABLE)
            groups = plan_rewrite(RewriteKind.FULL, WHOLE_TABLE, live.files, policy).groups
            full_bytes = policy.size_levels.full_bytes
            request = RewriteRequest(location, groups, mark, may_copy=may_copy, full_bytes=full_bytes)
            for group in engine.rewrite(request, Steering()).groups:
                if group.status is not GroupStatus.COMMITTED:
                    raise RuntimeError(f"{group.status}: {group.error}")

        yield compact


@contextmanager
def rewrite_data_files(folder: Path, setting: Setting) -> Iterator[Compact]:
    """Iceberg's own procedure on Spark, with its option to remove what the rewrite leaves of delete files."""
    options = {
        "target-file-size-bytes": setting.target_bytes,
        "delete-file-threshold": 1,
        "remove-dangling-deletes": "true",
    }
    pairs = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    with started_spark(folder / "spark", driver_memory=setting.heap, iceberg=True) as spark:
        session = ice_session(spark, folder / "lake")
        call = "CALL ice.system.rewrite_data_files(table => 'db.{}', options => map({}))"
        yield lambda table: session.sql(call.format(table.name, pairs)).collect()


@contextmanager
def iceberg_go(folder: Path, setting: Setting) -> Iterator[Compact]:
    """The command line of iceberg-go: a process for each table."""
    program = ICEBERG_GO.find()
    if program is None:
        raise MissingError(f"not installed: `make {ICEBERG_GO.name}` builds it where there is Go")
    command = [str(program), "--catalog", "hadoop", "--warehouse", str(folder / "lake"), "compact", "run"]

    def compact(table: Path) -> None:
        size = f"--target-file-size={setting.target_bytes}"
        done = subprocess.run([*command, size, f"db.{table.name}"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}")

    yield compact


SIDES = {
    OURS: partial(lakewright, may_copy=True),
    ENCODED: partial(lakewright, may_copy=False),
    SPARK: rewrite_data_files,
    GO: iceberg_go,
}
TITLES = {
    OURS: "Lakewright",
    ENCODED: "Lakewright, `row-group-copy` = `never`",
    SPARK: "`rewrite_data_files`",
    GO: "iceberg-go `compact run`",
}


def play_side(folder: Path, played: Played, setting: Setting) -> Played:
    """Play one side on the warehouse in `folder`; the row of one that fails states the reason."""
    with children_killed_after(setting.limit_s) as is_over:
        try:
            with SIDES[played.side](folder, setting) as compact:
                _measure(compact, folder / "lake" / "db", played)
        except MissingError as missing:
            played.note = str(missing)
        except Exception as error:  # noqa: BLE001 - however a side fails to start or to end, the others are played
            played.note = played.note or _reason(error)
    if is_over.is_set():
        played.note = f"more than {setting.limit_s:.0f} s"
    return played


def _measure(compact: Compact, warehouse: Path, played: Played) -> None:
    """Compact the small tables, then the other; the reason of a failure is read while there is a JVM that has it."""
    meter, began = TreeMeter(has_own=played.side != GO), time.monotonic()
    try:
        for small in sorted(warehouse.glob("warm_*")):
            compact(small)
        began = time.monotonic()
        with meter:
            compact(warehouse / "compacted")
    except Exception as error:  # noqa: BLE001 - however a side fails, the others are played
        played.note = _reason(error)
    played.wall_s, played.cpu_s, played.peak_mib = time.monotonic() - began, meter.cpu_s, meter.peak_mib


def _reason(error: Exception) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - py4j asks the JVM for the text, which may be gone
        text = type(error).__name__
    return "out of memory" if "OutOfMemoryError" in text else f"failed: {' '.join(text.split())[:200]}"


def play_case(folder: Path, name: str, asked: Any) -> list[Played]:
    """Play all sides of a case; the row of one states it if the table's rows are not those that were made."""
    case, setting, done = case_of(name, asked.file_bytes), Setting(asked.heap, asked.target_bytes, asked.limit_s), []
    for number in range(asked.warm_ups):
        make(folder / f"lake/db/warm_{number}", case.smaller(WARM_UP_FILES), asked.seed + 1 + number)
    rows = make(folder / "lake/db/compacted", case, asked.seed)
    (folder / "lake").rename(folder / "made")
    gb = sum(file.stat().st_size for file in (folder / "made/db/compacted/data").iterdir()) / 1e9
    for side in asked.sides:
        if side == ENCODED and case.has_deletes:
            continue  # Deletes forbid copies: it is the same as without.
        copied(folder / "made", folder / "lake")
        played = Played(name, side, gb)
        try:
            played = called_alone(play_side, folder, played, setting)
        except BrokenProcessPool:
            played.note = "its process was killed"
        if not played.note:
            _compare(folder / "lake/db/compacted", rows, played)
        print(*_row(played), sep=" | ", flush=True)
        done.append(played)
    shutil.rmtree(folder)
    return done


def _compare(table: Path, rows: Rows, played: Played) -> None:
    try:
        found, played.files, played.delete_files = read(table)
    except duckdb.Error as error:
        played.note = f"{WRONG}: DuckDB does not read the table: {error}"
    else:
        played.note = "" if found == rows else f"{WRONG}: {found[0]:,} and not {rows[0]:,}, or others"


def _row(one: Played) -> tuple[object, ...]:
    title = TITLES[one.side]
    if one.note:
        return (one.case, title, one.note, *[""] * 5)
    figures = (f"{one.wall_s:.1f}", f"{one.cpu_s:.1f}", f"{one.cpu_s_per_gb:.2f}", f"{one.peak_mib:.0f}")
    return (one.case, title, *figures, one.files, one.delete_files)


def goals(done: list[Played]) -> list[Limit]:
    """Return what Lakewright has to show in the cases in which it and the other side have figures."""
    found = {(one.case, one.side): one for one in done if not one.note}
    limits = []
    for case in dict.fromkeys(one.case for one in done):
        ours, encoded, spark = (found.get((case, side)) for side in (OURS, ENCODED, SPARK))
        if ours and "+" not in case:
            limits.append(Limit(f"CPU s per GB by copy, {case} files", ours.cpu_s_per_gb, 1.0))
        if ours and "+" in case:
            limits.append(Limit(f"peak memory in MiB with {case} files", ours.peak_mib, 2048))
        compared = ours if "+" in case else encoded
        if compared and spark:
            how = "with all deletes" if "+" in case else "encoded"
            text = f"CPU {how} by that of rewrite_data_files, {case} files"
            limits.append(Limit(text, compared.cpu_s / spark.cpu_s, 1.0))
    return limits


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked for."""
    text = "files of data alone, as 174, or of data, positions and keys, as 200+200+200"
    parser.add_argument("--cases", nargs="*", default=list(CASES), help=text)
    parser.add_argument("--file-bytes", type=int, default=FILE_BYTES, help="of a data file without deletes, about")
    parser.add_argument("--target-bytes", type=int, default=TARGET_BYTES)
    parser.add_argument("--heap", default="1g", help="of each JVM")
    parser.add_argument("--limit-s", type=float, default=1_800, help="of each side in each case, its start included")
    parser.add_argument("--warm-ups", type=int, default=3, help=f"tables of {WARM_UP_FILES} files that come before")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sides", nargs="*", default=list(SIDES), choices=list(SIDES))


def play(folder: Path, asked: Any) -> Result:
    """Play all cases; raises RuntimeError in the end if a side left other rows than it found."""
    done = [one for number, case in enumerate(asked.cases) for one in play_case(folder / f"case-{number}", case, asked)]
    if wrong := [f"{TITLES[one.side]}, {one.case}: {one.note}" for one in done if one.note.startswith(WRONG)]:
        raise RuntimeError("; ".join(wrong))
    head = ("files", "side", "wall s", "CPU s", "CPU s per GB", "peak MiB", "data files after", "delete files after")
    versions = {name: metadata.version(name) for name in ("pyspark", "lakewright")}
    versions["iceberg-go"] = ICEBERG_GO.package.rpartition("@v")[2]
    setting = (
        f"Target {asked.target_bytes / 2**20:.0f} MiB, heap {asked.heap}, {asked.warm_ups} warm-ups, seed {asked.seed}"
    )
    figures = [{name: getattr(one, name) for name in Played.__slots__} for one in done]
    more = {name: getattr(asked, name) for name in ("seed", "heap", "target_bytes", "file_bytes", "warm_ups")}
    return Result(
        markdown(head, [_row(one) for one in done]),
        "",
        setting,
        versions,
        goals(done),
        {**more, "sides": figures},
    )
