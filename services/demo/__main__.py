"""`make demo`: the main job from end to end on this machine, shown while it happens and proved at the end."""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shutil import which
from threading import Event
from typing import Any

from rich.console import Console

from services.demo.demo_run import DemoRun, DemoSettings
from services.demo.report import show
from services.demo.row_checksum import DemoTable
from shared.errors import LakewrightError


def main() -> int:
    """Run the demonstration; 0 if no row was lost."""
    parser = argparse.ArgumentParser(prog="lakewright-demo", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the writer writes (default: 60)")
    parser.add_argument("--per-second", type=float, default=4.0, help="commits per second (default: 4)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the rows (default: 7)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep table, logs and Redis data in this folder")
    parser.add_argument("--stay", action="store_true", help="keep the page open at the end, until Ctrl-C")
    options = parser.parse_args()

    console = Console()
    try:
        with tempfile.TemporaryDirectory(prefix="lakewright-demo-") as scratch:
            folder = (options.keep or Path(scratch)).resolve()
            settings = DemoSettings(folder, options.seconds, options.per_second, options.seed)
            demo = DemoRun(settings, DemoTable(folder), console)
            with demo.run() as result:
                report(console, result, options)
                if options.stay:
                    console.print(f"The page stays at {demo.url}/ until Ctrl-C.", highlight=False)
                    with suppress(KeyboardInterrupt):
                        Event().wait()
    except LakewrightError as problem:
        console.print(f"[red]The demonstration could not run:[/] {problem}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0 if result["rows_hash_equal"] else 1


def report(console: Console, result: Mapping[str, Any], options: argparse.Namespace) -> None:
    """Print the result and what to do next, and write the figures where that was requested."""
    show(console, result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
        console.print(f"Figures written to {options.json}")
    if options.keep is None:
        console.print("Table, logs and Redis data are deleted with their temporary folder; --keep DIR keeps them.")
    if not options.stay:
        console.print("To look at the page at the end: make demo ARGS=--stay")
    console.print("Next, a plan for a table of your own, which changes nothing:")
    console.print(f"  {_lakewright()} optimize LOCATION --dry-run", soft_wrap=True, highlight=False)


def _lakewright() -> str:
    """Return the command as this shell finds it: the environment that `make` uses need not be active."""
    return "lakewright" if which("lakewright") else str(Path(sys.executable).with_name("lakewright"))


if __name__ == "__main__":
    sys.exit(main())
