"""`lakewright doctor`: names each obstacle to Lakewright on this machine, where it is, and what to do about it.

Each check reads one thing and returns a finding; none raises, none needs another, and nothing is changed but the
shim of the bundled Java, which searching for a Java writes.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from actor.jvm.java import JavaSearch
from services.cli.checks.decider import check_service, may_be_starting
from services.cli.checks.finding import Finding, FindingLevel, failed
from services.cli.checks.machine import check_disk, check_jars, check_java, check_python
from services.cli.checks.redis_server import check_redis
from services.cli.cli_context import setting_of
from services.paths import data_dir, ivy_dir, java_search
from services.settings import TOKEN, URL, default_url, redis_url
from services.visible_text import visible

if TYPE_CHECKING:
    from rich.console import Console


WAIT_S = 300.0
"""Longest wait for the decider and an actor: Spark's start takes half a minute, longer where others compute."""

ASK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class DoctorSettings:
    """Addresses and folders to check."""

    java: JavaSearch
    ivy_dir: Path
    data_dir: Path
    redis_url: str
    decider_url: str
    token: str | None = field(default=None, repr=False)


def doctor_settings(environ: Mapping[str, str]) -> DoctorSettings:
    """Read what to check from the environment, as the services do."""
    return DoctorSettings(
        java=java_search(environ),
        ivy_dir=ivy_dir(environ),
        data_dir=data_dir(environ),
        redis_url=redis_url(environ),
        decider_url=default_url(environ),
        token=environ.get(TOKEN) or None,
    )


def doctor(
    context: typer.Context,
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait up to five minutes for a decider and an actor that start.")
    ] = False,
) -> None:
    """Check this machine and the services. Exit code 1: a check failed."""
    settings = doctor_settings({**os.environ, URL: setting_of(context).url})
    if wait:
        says = "waiting for the decider and an actor"
        with nullcontext() if setting_of(context).as_json else setting_of(context).output().console.status(says):
            wait_for_service(settings)
    findings = run_checks(settings)
    if setting_of(context).as_json:
        typer.echo(to_json(findings))
    else:
        show(findings, setting_of(context).output().console)
    if failed(findings):
        raise typer.Exit(1)


def wait_for_service(settings: DoctorSettings) -> None:
    """Return when the decider is ready and an actor takes jobs, or after the longest wait."""
    until_s = time.monotonic() + WAIT_S
    while may_be_starting(check_service(settings.decider_url, settings.token)) and time.monotonic() < until_s:
        time.sleep(ASK_EVERY_S)


def run_checks(settings: DoctorSettings) -> list[Finding]:
    """Run every check; takes some seconds at most, if servers do not answer."""
    service = check_service(settings.decider_url, settings.token)
    is_ready = service[0].status is FindingLevel.OK
    checks: tuple[Callable[[], list[Finding]], ...] = (
        lambda: [check_python(sys.version_info[:2])],
        lambda: [check_java(settings.java)],
        lambda: [check_jars(settings.ivy_dir)],
        lambda: check_redis(settings.redis_url, is_decider_ready=is_ready),
        lambda: service,
        lambda: [check_disk(settings.data_dir)],
    )
    return [finding for check in checks for finding in check()]


def to_json(findings: list[Finding]) -> str:
    """The findings for machines."""
    return json.dumps({"ok": not failed(findings), "findings": [asdict(finding) for finding in findings]}, indent=2)


def show(findings: list[Finding], console: "Console") -> None:
    """The findings for people."""
    from rich.table import Table  # noqa: PLC0415 - for people only
    from rich.text import Text  # noqa: PLC0415

    colors = {FindingLevel.OK: "green", FindingLevel.WARN: "yellow", FindingLevel.FAIL: "red"}
    table = Table(show_header=True, header_style="bold")
    for title in ("Check", "Status", "What", "Where", "What to do"):
        table.add_column(title, overflow="fold")
    for finding in findings:
        # Text, not markup: messages of others may hold brackets.
        status = Text(finding.status, style=colors[finding.status])
        words = (visible(word) for word in (finding.what, finding.where, finding.action))
        table.add_row(finding.check, status, *map(Text, words))
    console.print(table)
