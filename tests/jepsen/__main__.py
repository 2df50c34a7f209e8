"""`make jepsen`: the laboratory of the soak turned on other compactors; exit code 1 if ours does harm.

Each rival works beside the same writers, readers and faults, from one seed. Where harm is seen, the run is repeated. A
finding counts if two runs show it and the control, the same writers without any compactor, does not. The seed repeats
choices, not their timing.
"""

import argparse
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.bench.machine import keep, machine
from tests.bench.rivals.page import where_of, write_section
from tests.jepsen.on_delta import OnDelta
from tests.jepsen.on_iceberg import OnIceberg
from tests.jepsen.report import Row, row_of, table
from tests.jepsen.rival import BY_PYICEBERG, AbsentError, Rival, known
from tests.jepsen.seen import Seen
from tests.support.iceberg_rest_lake import rest_lake
from tests.support.redis_server import RedisServer

SECONDS = 110.0
"""Of one run: with two controls and a few repetitions, all rivals take half an hour."""
MOST_RUNS = 4
"""Of a rival that shows harm: races are not won in each run of a seed."""
ERROR_CHARS = 200


def main() -> int:
    """Run all, print the table, keep the figures; returns 1 if ours does harm."""
    rivals = known()
    names = [rival.name for rival in rivals]
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of one run")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--rivals", nargs="*", default=names, choices=names)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--docs", type=Path, help="write the section of this page")
    asked = parser.parse_args()
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    folder = Path(tempfile.mkdtemp(prefix="lakewright-jepsen-"))
    began = machine()
    print(f"seed {seed}, folder {folder}; {began}", flush=True)
    controls: dict[str, Seen] = {}
    once = partial(run, folder, seed, asked.seconds)
    rows = [examined(rival, once, controls) for rival in rivals if rival.name in asked.rivals]
    print(table(rows))
    keep({**began, "seed": seed, "seconds": asked.seconds, "rows": [row.figures for row in rows]}, asked.json)
    if asked.docs:
        where = f"{where_of(began)} Seed {seed}, {asked.seconds:g} s for a run."
        write_section(asked.docs, "jepsen", f"{where}\n\n{table(rows)}")
    failed = [row.title for row in rows if row.fails]
    print(f"harm by {', '.join(failed)}; everything is kept in {folder}" if failed else "no harm by ours")
    if not any(row.findings for row in rows) and not failed:
        shutil.rmtree(folder)
    return int(bool(failed))


def examined(rival: Rival, run: Callable[..., Seen], controls: dict[str, Seen]) -> Row:
    """Return the row of a rival: run the control of its writers unless that was done, and repeat a run with harm."""
    row = row_of(rival)
    try:
        row.version = rival.version()
        if rival.writers not in controls:
            controls[rival.writers] = run(None, rival.writers)
        row.control = controls[rival.writers]
        row.runs.append(run(rival, rival.writers))
        while row.is_open and len(row.runs) < MOST_RUNS:
            row.runs.append(run(rival, rival.writers))
    except AbsentError as why:
        row.absent = str(why)
    except (AssertionError, RuntimeError) as problem:  # What is waited for in vain.
        row.absent = "" if row.runs else f"it did not run: {problem}"[:ERROR_CHARS]
    return row


def run(folder: Path, seed: int, seconds: float, rival: Rival | None, writers: str) -> Seen:
    """Run the laboratory once, with everything in a folder of its own, and print what was seen."""
    inside = folder / f"{len(list(folder.iterdir()))}-{rival.name if rival else f'control-{writers}'}"
    inside.mkdir()
    with RedisServer() as redis, ExitStack() as held:
        if writers == BY_PYICEBERG:
            (inside / "lake").mkdir()
            lake = held.enter_context(rest_lake(inside / "lake"))
            seen = OnIceberg(rival, redis, inside, seed, lake).run(seconds)
        else:
            seen = OnDelta(rival, redis, inside, seed, writers).run(seconds)
    print(f"{inside.name}: {seen.figures}", flush=True)
    return seen


if __name__ == "__main__":
    sys.exit(main())
