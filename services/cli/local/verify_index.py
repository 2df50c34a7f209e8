"""`lakewright tables index LOCATION --verify`: whether each row of an index is where its blocks say, by Spark alone.

It is the proof that each rewrite begins with, of all files. Nothing is written.
"""

import asyncio
import os
import uuid
from collections.abc import Mapping
from typing import Any

from actor.ports import TableJob
from decider.state.effective_policy import resolve_unregistered
from services.cli.cli_context import CliContext
from services.cli.decider_parts import local_formats
from services.cli.local.optimize import own_engine
from services.cli.local.run import ALONE
from services.cli.locations import location_of
from services.cli.render import Output, counted
from services.cli.visible_console import VisibleConsole
from services.decider.settings import decider_settings
from shared.errors import LeaseLost, RefusedFiles
from shared.jobs.options import IndexJobOptions
from shared.jobs.payload import INDEX
from shared.table import CommitOrigin


def verify_index(table: str, revision: int | None, setting: CliContext) -> int:
    """Compare rows with blocks, print the answer, and return the exit code: 1 if a block has other rows.

    revision: of the files that are read, None for all of them. Raises Unsupported for a table that may not be touched,
    and what reading the log and starting Spark raise.
    """
    out, location = setting.output(), location_of(table)
    snapshot = asyncio.run(local_formats().open(location).snapshot())
    default, metadata = decider_settings(os.environ).tracking.policy, snapshot.metadata
    policy = resolve_unregistered(default, metadata.configuration, {}, metadata.format).policy
    options = IndexJobOptions(revision=revision, only_verifies=True).encode()
    origin = CommitOrigin(f"alone-{uuid.uuid4().hex[:16]}", ALONE)
    job = TableJob(INDEX, location, policy, origin, metadata.table_uuid, options=options)
    report = VisibleConsole(stderr=True).print
    problem, control = "", _NothingChanges()
    with (setting.engine or own_engine)(report) as engines:
        report("comparing rows with blocks")
        try:
            engines.of(metadata.format).run_table_job(job, control)
        except RefusedFiles as refused:
            problem = str(refused)
    return _show(out, {"problem": problem, **control.figures})


class _NothingChanges:
    """`TableJobControl` of a job that changes nothing; `figures`: what has been compared so far."""

    def __init__(self) -> None:
        self.figures = dict.fromkeys(("files_verified", "blocks_verified", "rows_verified"), 0)

    def may_change(self) -> None:
        raise LeaseLost("an index is verified, not changed")

    def should_stop(self) -> bool:
        return False

    def reached(self, point: str, done: int = 0, total: int = 0) -> None:
        pass

    def measured(self, figures: Mapping[str, int]) -> None:
        self.figures |= figures


def _show(out: Output, answer: dict[str, Any]) -> int:
    if out.as_json:
        out.raw(answer)
    else:
        files, blocks = (counted(answer[f"{name}s_verified"], name) for name in ("file", "block"))
        out.line(f"Rows match their blocks in {files} with {blocks} and {answer['rows_verified']:,} rows.")
        if answer["problem"]:
            out.line(f"The next do not: {answer['problem']}.")
    return int(bool(answer["problem"]))
