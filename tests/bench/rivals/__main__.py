"""`make bench-rivals NAME=…`: benchmarks that others have published, at a fraction of their size, rivals in one run.

Exit code 1 if a goal of ours is not met. `DOCS=docs/rivals.md` writes the section of the bench there.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from tests.bench.machine import exit_code, keep, machine
from tests.bench.rivals import autocomp, fabric_200, olake, risingwave
from tests.bench.rivals.page import where_of, write_section

PARTS: dict[str, ModuleType] = {
    "fabric-200": fabric_200,
    "risingwave": risingwave,
    "olake": olake,
    "autocomp": autocomp,
}
"""A part has `arguments(parser)`, and `play(folder, asked)`, which returns a `Result`."""


def main() -> int:
    """Play one part, print its table and goals, and keep the figures; returns 1 if a goal is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rivals")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--docs", type=Path, help="write the section of this page")
    parts = parser.add_subparsers(dest="name", required=True)
    for name, part in PARTS.items():
        part.arguments(parts.add_parser(name))
    asked, began = parser.parse_args(), machine()
    print(began, flush=True)
    with tempfile.TemporaryDirectory(prefix=f"lakewright-{asked.name}-") as folder:
        result = PARTS[asked.name].play(Path(folder), asked)
    print(result.table, *result.goals, sep="\n")
    keep({**began, "name": asked.name, "versions": result.versions, **result.figures}, asked.json)
    if asked.docs:
        goals = "\n".join(f"- {goal}" for goal in result.goals)
        versions = ", ".join(f"{name} {one}" for name, one in result.versions.items())
        where = f"{where_of(began)} {result.setting}; {versions}."
        write_section(asked.docs, asked.name, f"{where}\n\n{result.table}\n\n{goals}", result.picture)
    return exit_code(result.goals)


if __name__ == "__main__":
    sys.exit(main())
