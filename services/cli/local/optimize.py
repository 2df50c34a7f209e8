"""`lakewright optimize LOCATION`: plan, show, confirm, run, and report the gain, with no other service running.

The plan is made from the table's log without a JVM, in a second or less; Spark starts only after the confirmation.
Standard output carries the answer, standard error whatever moves.
"""

import asyncio
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from actor.engines import EngineSet
from decider.state.table_summary import TableSummary
from services.cli.cli_context import CliContext
from services.cli.client import CallFailed
from services.cli.decider_parts import decider_parts
from services.cli.local.plan import LocalPlan, LocalRequest, describe, make_plan
from services.cli.local.run import LocalRun, LocalRunner, RunListener
from services.cli.locations import location_of
from services.cli.render import Output, compactness, counted, duration, size
from services.cli.visible_console import VisibleConsole
from services.decider.settings import decider_settings
from services.settings import boundary, format_options, store_options
from shared.jobs.payload import RewriteKind
from shared.layout.partition_count import count_partitions
from shared.table import Snapshot

PARTLY, INTERRUPTED = 3, 130
ROWS_SHOWN = 40
"""Partitions that a plan lists for people; the totals count all."""

Engine = Callable[[Callable[[str], None]], AbstractContextManager[EngineSet]]
"""Opens the engines for one run; its argument reports each step."""


@dataclass(frozen=True, slots=True)
class OptimizeArguments:
    """The command as it was given."""

    table: str
    mode: str
    partitions: tuple[str, ...]
    properties: Mapping[str, str]
    dry_run: bool
    force: bool
    yes: bool


def optimize(asked: OptimizeArguments, setting: CliContext) -> int:
    """Carry out the command; returns the exit code.

    Raises InvalidInput for what cannot be used, and whatever reading the log and starting Spark raise.
    """
    out = setting.output()
    location = location_of(asked.table)
    setting.prepare_logs()
    made = _plan(asked, location)
    answer = {"plan": describe(made), "run": None, "result": None}
    if not out.as_json:
        _show(out, made)
    if asked.dry_run or not made.groups:
        return _end(out, answer, 0)
    if not asked.yes and not typer.confirm(f"Rewrite {size(made.bytes)} in {counted(len(made.groups), 'group')}?"):
        out.line("Nothing was changed.")
        return 1
    started = time.monotonic()
    run = LocalRun(job=f"alone-{uuid.uuid4().hex[:16]}")
    stopped = _run(made, setting.engine or own_engine, run)
    took_s = time.monotonic() - started
    counted_after = count_partitions(_snapshot(location).files, made.policy)
    after = TableSummary.of([one.state for one in counted_after.values()], made.policy)
    result = {
        "files": {"before": made.before.files, "after": after.files},
        "bytes": {"before": made.before.bytes, "after": after.bytes},
        "files_needed": {"before": made.before.files_needed, "after": after.files_needed},
        "took_ms": round(took_s * 1000),
        "interrupted": stopped,
    }
    answer |= {"run": run.describe(), "result": result}
    if not out.as_json:
        _show_result(out, result, run)
    if run.failure is not None:
        code = 1
    elif stopped and run.skipped:
        code = INTERRUPTED
    else:
        code = PARTLY if run.stale or run.refused else 0
    return _end(out, answer, code)


def _plan(asked: OptimizeArguments, location: str) -> LocalPlan:
    try:
        kind = RewriteKind(asked.mode)
    except ValueError:
        raise typer.BadParameter(f"expected one of {', '.join(RewriteKind)}", param_hint="--mode") from None
    request = LocalRequest(kind, asked.partitions, asked.properties, force=asked.force)
    default, now_ms = decider_settings(os.environ).tracking.policy, time.time_ns() // 1_000_000
    return make_plan(location, _snapshot(location), request, default, now_ms=now_ms)


def _snapshot(location: str) -> Snapshot:
    with decider_parts(extra="standalone"):
        from decider.formats.registry import table_formats  # noqa: PLC0415 - optional
        from decider.formats.table_format import StorageAccess  # noqa: PLC0415
        from decider.storage.object_reads import ReadMeter  # noqa: PLC0415
        from decider.storage.stores import ObjectStores  # noqa: PLC0415
    stores = ObjectStores(store_options())
    formats = table_formats(StorageAccess(ReadMeter(), stores, boundary()), format_options())
    return asyncio.run(formats.open(location).snapshot())


def own_engine(report: Callable[[str], None]) -> AbstractContextManager[EngineSet]:
    """Open the engines of this process; raises CallFailed where Spark is not installed."""
    try:
        from services.cli.local.run import alone_engine  # noqa: PLC0415 - Spark is optional and takes a second
    except ImportError as missing:
        raise CallFailed(
            f"rewriting a table needs Spark ({missing.name} is missing): pip install 'lakewright[standalone]'"
        ) from missing
    return alone_engine(report)


def _run(made: LocalPlan, engine: Engine, run: LocalRun) -> bool:
    """Run the plan under a progress bar; returns whether it was asked to stop."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TimeElapsedColumn())
    console = VisibleConsole(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress, _stop_on_ctrl_c() as stopping:
        task = progress.add_task("preparing", total=made.bytes)
        done = 0

        def report(text: str) -> None:
            progress.update(task, description=text)

        def ended(groups: int, count_bytes: int) -> None:
            nonlocal done
            done += groups
            progress.update(task, advance=count_bytes)

        def begun(_plan: object, groups: int) -> None:
            report(f"rewriting groups {done + 1} to {done + groups} of {len(made.groups)}")

        with engine(report) as opened:
            steps = RunListener(stopping.is_set, begun, lambda point: report(point.replace("_", " ")), ended)
            LocalRunner(made, opened.of(made.format), steps, run).go()
    return stopping.is_set()


@contextmanager
def _stop_on_ctrl_c() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets; the second one ends the process as it always does."""
    stopping = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def hear(_number: int, _frame: object) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        VisibleConsole(stderr=True).print(
            "stopping: what is being written is committed first; Ctrl-C again ends at once"
        )

    is_main = threading.current_thread() is threading.main_thread()
    if is_main:
        signal.signal(signal.SIGINT, hear)
    try:
        yield stopping
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)


def _show(out: Output, made: LocalPlan) -> None:
    rows = [
        (
            one["partition_label"],
            one["files"],
            one["files_replaced"],
            len(one["groups"]),
            one["files"] - one["files_removed"],
            size(one["bytes"]),
        )
        for one in describe(made)["plans"]
    ]
    columns = ("partition", "files", "replaced", "groups", "files after", "to rewrite")
    if rows:
        out.rows(f"{made.location}, version {made.version}, mode {made.kind}", columns, rows[:ROWS_SHOWN])
    if len(rows) > ROWS_SHOWN:
        out.line(f"… and {len(rows) - ROWS_SHOWN} more partitions")
    for issue in made.issues:
        out.line(f"The property {issue.property} = {issue.value} cannot be used and is left out: {issue.reason}.")
    for note in made.notes:
        out.line(f"{note}.")
    if not made.groups:
        whys = "; ".join(f"{counted(count, 'partition')}: {reason.message}" for reason, count in made.reasons.items())
        return out.line(f"Nothing to do at version {made.version}. {whys}".rstrip())
    return out.line(
        f"{counted(made.before.files, 'file')}, {size(made.before.bytes)}, would become {made.after.files:,}: "
        f"{made.files_replaced:,} replaced in {counted(len(made.groups), 'group')}, {size(made.bytes)} to rewrite. "
        f"Then: {compactness(made.after.files, made.after.files_needed)}."
    )


def _show_result(out: Output, result: dict[str, Any], run: LocalRun) -> None:
    files, sizes, needed = result["files"], result["bytes"], result["files_needed"]
    out.rows(
        "Result",
        ("", "before", "after"),
        [
            ("files", f"{files['before']:,}", f"{files['after']:,}"),
            ("bytes", size(sizes["before"]), size(sizes["after"])),
            ("files that would do", f"{needed['before']:,}", f"{needed['after']:,}"),
        ],
    )
    out.line(
        f"{counted(run.landed, 'group')} committed in {counted(len(run.versions), 'commit')}, {run.rows:,} rows, "
        f"{size(run.bytes_replaced)} became {size(run.bytes_written)} in {duration(result['took_ms'] / 1000)} "
        f"(writing {duration(run.prepare_ms / 1000)}, committing {duration(run.commit_ms / 1000)})."
    )
    if run.stale:
        out.line(f"{counted(run.stale, 'group')} skipped: other writers changed their files. Run the command again.")
    if run.refused:
        out.line(f"{counted(run.refused, 'group')} refused, nothing of them was changed: {run.refusal}")
    if run.skipped:
        out.line(f"{counted(run.skipped, 'group')} not started.")
    if run.failure is not None:
        out.line(f"Stopped early: {run.failure}")


def _end(out: Output, answer: dict[str, Any], code: int) -> int:
    if out.as_json:
        out.raw(answer)
    return code
