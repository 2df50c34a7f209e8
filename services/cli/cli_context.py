"""What every command is given: where the decider is, and how to answer."""

import os
import sys
from dataclasses import dataclass
from typing import Any

import httpx
import typer
from rich.console import Console

from services.cli.client import ApiClient
from services.cli.render import Output
from services.settings import TOKEN


@dataclass(frozen=True, slots=True)
class CliContext:
    """The options that stand before the command; `transport` and `engine` replace the network and Spark."""

    url: str
    as_json: bool
    transport: httpx.BaseTransport | None = None
    engine: Any = None

    def api(self) -> ApiClient:
        """Return a client, to be used in a with statement."""
        return ApiClient(self.url.rstrip("/"), os.environ.get(TOKEN) or None, self.transport)

    def output(self) -> Output:
        """Return the printer of answers; without a terminal lines are not cut."""
        width = None if sys.stdout.isatty() else 200
        return Output(Console(width=width, soft_wrap=False, highlight=False), self.as_json)


def setting_of(context: typer.Context) -> CliContext:
    """Return what stands before the command."""
    found: CliContext = context.obj
    return found
