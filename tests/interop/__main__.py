"""`make interop`: the laboratory whole, with a table of results; exit code 1 if a difference is ours."""

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from tests.bench.spark import started_spark
from tests.interop.laboratory import Laboratory, Staff
from tests.interop.plan import MEANWHILE, WORKER, Planned, whole
from tests.interop.remote import engines_of
from tests.interop.report import keep, load, page
from tests.interop.rewriting import EngineRewrite, WorkerRewrite, worker_on
from tests.interop.staff import BothReaders, lab_session, staff
from tests.interop.verdicts import Result, Verdict
from tests.support.forced_copies import COPIED, VARIABLE, CountingEngine, is_forced
from tests.support.redis_server import RedisServer

_ROOT = Path(__file__).resolve().parents[2]
_OTHERS = _ROOT / ".cache" / "interop" / "bin" / "python"
_HERE = ("delta-spark", "pyspark", "deltalake", "pyarrow", "duckdb", "duckdb-extension-delta", "polars")
_SHUFFLE: dict[str, Any] = {"spark.sql.shuffle.partitions": "1"}
_MEMORY = "3g"  # Delta keeps the logs of tables for an hour, and there are a thousand tables in an hour.
_THERE = ("deltalake", "chdb", "daft", "polars-deltalake")


def main() -> int:
    """Run, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    parser.add_argument("--only", default="", help="a regular expression for the names of rounds, TABLE by CREATOR")
    parser.add_argument("--list", action="store_true", help="list the rounds and stop")
    parser.add_argument("--json", type=Path, help="keep the results in this file; those of other rounds in it stay")
    parser.add_argument("--docs", type=Path, help="write the page from the results in the JSON file")
    asked = parser.parse_args()
    rounds = [planned for planned in whole() if re.search(asked.only, planned.name)]
    if asked.list:
        print("\n".join(planned.name for planned in rounds))
        return 0
    if not _OTHERS.exists():
        sys.exit(f"{_OTHERS} is missing: `make interop` makes that environment")
    began = time.monotonic()
    found: list[Result] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lw-interop-")))
        spark = stack.enter_context(started_spark(folder / "spark", driver_memory=_MEMORY, **_SHUFFLE))
        readers, writers, newest = engines_of(_OTHERS)
        for engine in (*readers, *writers):
            stack.enter_context(engine)
        both = BothReaders()
        stack.callback(both.close)
        ours = CountingEngine(spark, proofreader=both)
        crew = staff(spark, ours, readers=readers, writers=writers, creators={"deltalake, newest safe": newest})
        laboratories = _laboratories(stack, spark, crew, ours, folder / "tables")
        for planned in rounds:
            results = _run(laboratories[planned.rewritten], planned)
            found += results
            shutil.rmtree(folder / "tables", ignore_errors=True)
            if asked.json:  # After each round: a long run that is ended keeps what it found.
                figures = {"versions": _versions(), "seconds": time.monotonic() - began, "cores": os.cpu_count()}
                figures |= {"groups": dict(ours.ways), "proofread": dict(both.seen)}
                began = time.monotonic()
                keep(results, figures, asked.json)
    if asked.json and asked.docs:
        asked.docs.write_text(page(*load(asked.json)))
    print(dict(Counter(result.verdict.value for result in found)))
    print(f"groups that landed, copied or encoded because: {dict(ours.ways.most_common())}")
    print(f"groups compared with their inputs by each reader: {dict(both.seen.most_common())}")
    copied_nothing = is_forced() and not ours.ways[COPIED]
    if copied_nothing:
        print(f"{VARIABLE}=forced, and no group was copied: these rounds show nothing of copies")
    return int(copied_nothing or any(result.verdict is Verdict.OURS for result in found))


def _laboratories(
    stack: ExitStack, spark: SparkSession, crew: Staff, engine: DeltaEngine, folder: Path
) -> dict[str, Laboratory]:
    """Return the laboratories by how they rewrite: by the engine alone, by a whole actor, or while rows are updated."""
    redis = stack.enter_context(RedisServer(appendfsync="everysec"))
    worker = stack.enter_context(worker_on(engine, redis.url))
    session = lab_session(spark, **{"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"})

    def update(location: Path) -> None:
        """Replace a third of the rows by the same ones: the table stays equal to the model."""
        session.sql(f"UPDATE delta.`{location}` SET id = id WHERE id % 3 = 0")

    rewrites: dict[str, Callable[[Path], int]] = {
        WORKER: WorkerRewrite(engine, redis.url, worker),
        MEANWHILE: EngineRewrite(engine, update),
    }
    found = {"": Laboratory(crew, folder)}
    for rewritten, rewrite in rewrites.items():
        creators = crew.creators | {name + rewritten: writer for name, writer in crew.creators.items()}
        changed = replace(crew, creators=creators, rewrite=rewrite, is_alone=rewritten != MEANWHILE)
        found[rewritten] = Laboratory(changed, folder)
    return found


def _run(laboratory: Laboratory, planned: Planned) -> list[Result]:
    """Run one round, and print what it found."""
    started = time.monotonic()
    results = list(laboratory.run(planned.case, planned.creator, planned.round))
    counts = Counter(result.verdict.value for result in results)
    print(f"{planned.name}: {dict(counts)} in {time.monotonic() - started:.0f} s", flush=True)
    for result in results:
        if result.verdict is Verdict.OURS:
            deed = f"{result.place.writer}, {result.place.operation}"
            print(f"    OURS {deed}; {result.reader}: {result.check}; {result.detail[:300]}")
    return results


def _versions() -> dict[str, str]:
    """Return the versions of the engines here and in the other environment."""
    here = {name: importlib.metadata.version(name) for name in _HERE}
    query = "import importlib.metadata as m; print(*(m.version(name) for name in " + repr(_THERE) + "))"
    reported = subprocess.run([_OTHERS, "-c", query], check=True, capture_output=True, text=True).stdout.split()
    there = {f"{name} (in an environment of its own)": version for name, version in zip(_THERE, reported, strict=True)}
    return here | {"Delta Kernel (Java)": here["delta-spark"]} | there


if __name__ == "__main__":
    sys.exit(main())
