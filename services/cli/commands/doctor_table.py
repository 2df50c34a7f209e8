"""`lakewright doctor TABLE`: whether engines that spell paths differently harmed a table, or may, read from its log.

Nothing is changed. Exit code 1 means that rows are wrong now, or that the log is missing or unreadable; a danger alone
is a warning.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import typer

from services.cli.checks.finding import Finding, FindingLevel, failed
from services.cli.cli_context import CliContext
from services.cli.client import segment
from services.cli.decider_parts import decider_parts
from services.cli.locations import is_location, location_of
from services.cli.render import counted, size
from services.settings import boundary, store_options
from services.visible_text import visible_json
from shared.errors import LakewrightError, RetryableError
from shared.paths.data_paths import is_portable
from shared.paths.locations import hadoop_path

SHOWN = 20
"""Removes and files that are listed for people; `--json` lists all."""

REPAIR = "see docs/doctor.md for the repair of the table, step by step; stop its writers first"


@dataclass(frozen=True, slots=True)
class TableReport:
    """Findings at a location; `missed`, `doubled` and `repair` are plain values for `--json`."""

    location: str
    version: int | None
    first_version: int | None
    findings: tuple[Finding, ...]
    missed: tuple[dict[str, Any], ...] = ()
    doubled: tuple[tuple[str, ...], ...] = ()
    repair: tuple[dict[str, Any], ...] = ()

    @property
    def is_harmed(self) -> bool:
        """True if a finding is a failure."""
        return failed(self.findings)


def doctor_table(table: str, setting: CliContext) -> int:
    """Examine a table by location or registered name and print the findings; returns the exit code.

    Raises InvalidInput for an invalid location, and CallFailed for an unknown name.
    """
    location = location_of(table) if is_location(table) else _registered(table, setting)
    setting.prepare_logs()
    report = examine(location)
    out = setting.output()
    if out.as_json:
        answer = {"ok": not report.is_harmed} | asdict(report)
        typer.echo(visible_json(json.dumps(answer, indent=2, ensure_ascii=False)))
        return int(report.is_harmed)
    since = "" if report.first_version is None else f" to {report.version}"
    out.line(f"{report.location}" + ("" if not since else f", versions {report.first_version}{since}"))
    rows = [(one.check, one.status, one.what, one.action) for one in report.findings]
    out.rows("Findings", ("check", "status", "what", "what to do"), rows)
    if report.missed:
        keys = ("version", "engine", "operation", "removed", "added", "fate", "rows")
        out.rows("Removes that missed", keys, [[one[key] for key in keys] for one in report.missed[:SHOWN]])
        if len(report.missed) > SHOWN:
            out.line(f"{len(report.missed) - SHOWN} more: --json lists all")
    return int(report.is_harmed)


def _registered(name: str, setting: CliContext) -> str:
    with setting.api() as api:
        return str(api.get(f"/v1/tables/{segment(name)}")["location"])


def examine(location: str) -> TableReport:
    """Read a table's log and judge it; a log that cannot be read is a finding, too."""
    with decider_parts():
        from decider.formats.delta.path_health import duplicates  # noqa: PLC0415 - optional
        from decider.formats.delta.path_log import open_path_log  # noqa: PLC0415
        from decider.storage.object_reads import ReadMeter  # noqa: PLC0415
        from decider.storage.stores import ObjectStores  # noqa: PLC0415
    try:
        log = open_path_log(location, meter=ReadMeter(), stores=ObjectStores(store_options()))
        history = asyncio.run(log.read())
    except LakewrightError as problem:
        status = FindingLevel.WARN if isinstance(problem, RetryableError) else FindingLevel.FAIL
        action = "nothing else was examined; repair the log, or give this program the right to read it"
        return TableReport(location, None, None, (Finding("log", status, str(problem), action=action),))
    files = history.snapshot.files
    doubled = duplicates(log.location, files)
    findings = (
        _log(history),
        _missed(history.missed, location),
        _doubled(doubled),
        _portable([file.path for file in files], sum(file.size_bytes for file in files), location),
        _outside(log.location, files),
        _refused(history.snapshot),
    )
    live = [one for one in history.missed if one.fate == "live"]
    return TableReport(
        log.location,
        history.snapshot.version,
        history.first_version,
        findings,
        tuple(asdict(one) for one in history.missed),
        tuple(tuple(file.path for file in several) for several in doubled),
        tuple(_remove(one.added) for one in live if one.dv_id is None),
    )


def _remove(path: str) -> dict[str, Any]:
    """The action that completes what a missed remove meant; the time of deletion is to be filled in."""
    return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True}}


def _log(history: Any) -> Finding:
    version, first = history.snapshot.version, history.first_version
    if first is None:
        return Finding("log", FindingLevel.WARN, f"version {version} by a checkpoint alone: its commits are deleted")
    if not history.is_whole:
        what = f"commits before version {first} are deleted and no checkpoint covers them: earlier removes are unknown"
        return Finding("log", FindingLevel.WARN, what)
    return Finding("log", FindingLevel.OK, f"{counted(version - first + 1, 'commit')} read, from version {first} on")


def _missed(missed: Sequence[Any], location: str) -> Finding:
    now = [one for one in missed if one.fate == "live"]
    carried = [one for one in missed if one.fate == "carried"]
    if now or carried:
        rows = [one.rows for one in now]
        known = f"{sum(row for row in rows if row is not None):,} rows" + (" or more" if None in rows else "")
        first = min(one.version for one in (*now, *carried))
        engines = ", ".join(sorted({one.engine for one in (*now, *carried)}))
        what = (
            f"{counted(len(now), 'file')} of {known} that {engines} removed are still live, since version {first}"
            if now
            else f"rows of {counted(len(carried), 'file')} that {engines} removed live on in files rewritten since"
        )
        if now and carried:
            what += f"; rows of {len(carried)} others live on in files rewritten since"
        back = f"RESTORE TABLE delta.`{hadoop_path(location)}` TO VERSION AS OF {first - 1} undoes all since"
        return Finding("removes", FindingLevel.FAIL, what, action=f"{REPAIR}; {back}")
    if missed:
        what = f"{counted(len(missed), 'remove')} missed once, and the files were removed by later commands"
        return Finding(
            "removes", FindingLevel.WARN, what, action="check whether those commands copied rows of these files"
        )
    return Finding("removes", FindingLevel.OK, "every remove hit the file that it meant")


def _doubled(doubled: Sequence[Sequence[Any]]) -> Finding:
    if not doubled:
        return Finding("duplicates", FindingLevel.OK, "no file is live under two spellings")
    rows = sum((several[0].rows or 0) * (len(several) - 1) for several in doubled)
    what = f"{counted(len(doubled), 'file')} live under several spellings: {rows:,} rows are read more than once"
    return Finding("duplicates", FindingLevel.FAIL, what, doubled[0][0].path, REPAIR)


def _portable(paths: Sequence[str], all_bytes: int, location: str) -> Finding:
    harmful = [path for path in paths if not is_portable(path)]
    if not harmful:
        return Finding(
            "paths", FindingLevel.OK, f"all {counted(len(paths), 'live file')} have paths that all engines share"
        )
    what = (
        f"{len(harmful):,} of {counted(len(paths), 'live file')} ({size(all_bytes)} in all) have paths that engines "
        f"spell differently, such as {harmful[0]}: a DELETE by delta-rs would not remove them"
    )
    action = (
        f"before delta-rs writes: lakewright optimize '{hadoop_path(location)}' --force, or the property "
        "lakewright.portable-paths=always"
    )
    return Finding("paths", FindingLevel.WARN, what, action=action)


def _outside(location: str, files: Sequence[Any]) -> Finding:
    limits = boundary()
    outside = [place for file in files if (place := limits.external(location, file))]
    if not outside:
        return Finding("external_files", FindingLevel.OK, "all files lie in the table")
    what = f"{counted(len(outside), 'file')} outside of the table, such as {outside[0]}: it is refused"
    action = "copy it (DEEP CLONE), or set LAKEWRIGHT_ALLOW_EXTERNAL_FILES=true"
    return Finding("external_files", FindingLevel.WARN, what, action=action)


def _refused(snapshot: Any) -> Finding:
    found = snapshot.refusal
    if found is None:
        return Finding("rewrites", FindingLevel.OK, "nothing in protocol or properties forbids them")
    return Finding("rewrites", FindingLevel.WARN, f"refused: {found.reason}", action=found.action)
