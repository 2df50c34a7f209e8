"""`make bench-read`: how fast the tables that rules left are read.

Two streams of small commits under each rule, and the same questions by each reader to each of the tables. All files are
in the system's cache, everything is warm, and the tables take turns. The table after 10,000 small commits is computed;
`--commits 10000 --file-kib 64 --plan-every 64 --streams large --rules lakewright optimize_end --target-kib 131072`
writes and reads it.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.delta.engine import EngineSettings, start_engine
from shared.policy.policy import MIB, Policy
from tests.bench.machine import keep, machine
from tests.bench.read import report
from tests.bench.read.levels import simulate
from tests.bench.read.measuring import WARM_UPS, Rounds, measure
from tests.bench.read.readers import Reader, known_readers, queries
from tests.bench.read.row_groups import drawn
from tests.bench.read.rules import Rule, known_rules
from tests.bench.read.stream import StreamSpec, default_streams, make_stream
from tests.bench.read.table import GrownTable, grow
from tests.bench.spark import started_spark

OURS = "lakewright"
REFERENCES = ("optimize", "optimize_end")
"""What the others are compared with: the first of them that is played."""
RULES = (OURS, "never", *REFERENCES, "deltalake")
READERS = ("Spark", "DuckDB", "pyarrow")


@dataclass(frozen=True, slots=True)
class Bench:
    """What all parts share."""

    readers: Sequence[Reader]
    rounds: Rounds
    folder: Path
    seed: int


def compare_rules(bench: Bench, spec: StreamSpec, rules: Sequence[Rule]) -> dict[str, Any]:
    """Let a stream's table grow under each rule, and read what they left."""
    folder = bench.folder / spec.name
    stream = make_stream(spec, folder / "files", seed=bench.seed)
    size = f"{len(stream.files):,} commits, {stream.bytes / MIB:.0f} MiB, {stream.rows:,} rows"
    print(f"\n{spec.name}: {spec.title}; {size}", flush=True)
    grown: dict[str, GrownTable] = {}
    for rule in rules:
        grown[rule.name] = grow(stream, rule, folder / rule.name)
        print(
            f"  {rule.title}: {len(grown[rule.name].layout.files)} files, {grown[rule.name].seconds:.0f} s", flush=True
        )
    tables = {name: one.path for name, one in grown.items()}
    times = measure(bench.readers, tables, queries(stream.rows), bench.rounds)
    reference = next(name for name in (*REFERENCES, *grown) if name in grown)
    print(report.layouts(grown, reference))
    for name in (name for name in (OURS, reference) if name in grown):
        print(drawn(f"{grown[name].title}, files", grown[name].layout.files))
        print(drawn(f"{grown[name].title}, row groups", grown[name].layout.row_groups))
    print(report.reading(times, {name: one.title for name, one in grown.items()}, reference))
    met = report.goals(times, grown, OURS, reference) if OURS in grown else []
    print("\n".join(met), flush=True)
    shutil.rmtree(folder)
    return {
        "stream": asdict(spec),
        "rules": {
            name: {**asdict(one), "path": None, "layout": {**asdict(one.layout), "bytes": one.layout.bytes}}
            for name, one in grown.items()
        },
        "times": report.times_as_values(times, reference),
        "goals": met,
    }


def show_levels(commits: int, file_kib: int, seed: int) -> dict[str, Any]:
    """Draw a partition after many small commits under the default policy, computed and not written."""
    partition = simulate(commits, file_kib, Policy(), seed=seed)
    figures: dict[str, Any] = {"commits": commits, "file_kib": file_kib}
    added = partition.layout.bytes
    print(
        f"\nlevels: {commits:,} commits of {file_kib} KiB (median) into one partition, computed; {added / MIB:.0f} MiB"
    )
    for state in ("after the last commit", "when it is idle"):
        layout = partition.layout
        print(drawn(f"files {state}", layout.files))
        print(drawn(f"row groups {state}", layout.row_groups), flush=True)
        figures[state] = asdict(layout)
        partition.compact_idle()
    copied, decoded = partition.copied_bytes / added, partition.decoded_bytes / added
    print(f"per byte added: {copied:.2f} bytes copied, {decoded:.2f} decoded")
    return figures | {"copied_bytes": partition.copied_bytes, "decoded_bytes": partition.decoded_bytes}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.read")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each question that count")
    parser.add_argument("--warm-ups", type=int, default=WARM_UPS, help="rounds of each question before")
    parser.add_argument("--readers", nargs="*", default=READERS, help="of Spark, DuckDB, pyarrow, DataFusion")
    parser.add_argument("--streams", nargs="*", default=["large", "daily"], help="none: leave this part out")
    parser.add_argument("--rules", nargs="*", default=RULES, help=f"of {', '.join(RULES)}, none")
    parser.add_argument("--commits", type=int, default=240)
    parser.add_argument("--file-kib", type=int, default=240, help="median size of a commit's file")
    parser.add_argument("--target-kib", type=int, default=16 * 1024, help="target size of files of every rule")
    parser.add_argument("--plan-every", type=int, default=1, help="commits between two plans of Lakewright's rule")
    parser.add_argument("--levels-commits", type=int, default=10_000, help="0: leave this part out")
    parser.add_argument("--levels-file-kib", type=int, default=64, help="median size of a commit's file")
    return parser.parse_args()


def _run(spark: SparkSession | None, folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    readers = [reader for reader in known_readers(spark) if reader.name in asked.readers]
    bench = Bench(readers, Rounds(asked.rounds, asked.warm_ups), folder, asked.seed)
    figures: dict[str, Any] = {"streams": {}}
    if asked.levels_commits:
        figures["levels"] = show_levels(asked.levels_commits, asked.levels_file_kib, asked.seed)
    if spark is not None:
        engine, _ = start_engine(spark, EngineSettings(), scratch=(folder / "scratch").as_uri())
        rules = [rule for rule in known_rules(spark, engine, asked.plan_every) if rule.name in asked.rules]
        for spec in default_streams(asked.commits, asked.file_kib, asked.target_kib):
            if spec.name in asked.streams:
                figures["streams"][spec.name] = compare_rules(bench, spec, rules)
    return figures


def main() -> None:
    """Run both parts, print the figures, and keep them as JSON."""
    asked = _arguments()
    print(f"seed {asked.seed}; {machine()}", flush=True)
    began = time.monotonic()
    figures: dict[str, Any] = {**machine(), "seed": asked.seed}
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="lakewright-bench-read-")))
        needs_spark = asked.streams or "Spark" in asked.readers
        figures |= _run(opened.enter_context(started_spark(folder)) if needs_spark else None, folder, asked)
    figures["seconds"] = round(time.monotonic() - began)
    print(f"{figures['seconds']} s")
    keep(figures, asked.json)


if __name__ == "__main__":
    main()
