"""Context of every command: where the decider is, and how to answer."""

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from services.cli.client import ApiClient
from services.cli.render import Output
from services.settings import TOKEN

if TYPE_CHECKING:
    from httpx import BaseTransport

LOG_LEVEL = "warning"
"""Commands log failures beside their answers, and not their progress."""


@dataclass(frozen=True, slots=True)
class CliContext:
    """The options before the command; `transport` and `engine` replace the network and Spark.

    `configure_logs` takes the level of the logs; a program that calls commands keeps its own configuration.
    """

    url: str
    as_json: bool
    transport: "BaseTransport | None" = None
    engine: Any = None
    configure_logs: Callable[[str], None] = lambda _level: None

    def prepare_logs(self) -> None:
        """Send logs to standard error, for commands that read a table's log."""
        self.configure_logs(LOG_LEVEL)

    def api(self) -> ApiClient:
        """Return a client, to be used in a with statement."""
        return ApiClient(self.url.rstrip("/"), os.environ.get(TOKEN) or None, self.transport)

    def output(self) -> Output:
        """Return the printer of answers; without a terminal lines are not cut."""
        width = None if sys.stdout.isatty() else 200
        return Output(width, self.as_json)


def setting_of(context: typer.Context) -> CliContext:
    """Return the options before the command."""
    found: CliContext = context.obj
    return found


def print_answer(context: typer.Context, call: Callable[[ApiClient], Any], show: Callable[[Output, Any], None]) -> None:
    """Call the API and print its answer: as JSON with `--json`, otherwise as `show` renders it."""
    setting = setting_of(context)
    with setting.api() as api:
        answer = call(api)
    out = setting.output()
    if out.as_json:
        out.raw(answer)
    else:
        show(out, answer)


def show_message(out: Output, answer: Any) -> None:
    """Print the message of an answer."""
    out.line(answer["message"])


def name_values(given: Iterable[str] | None, option: str = "--set") -> dict[str, str]:
    """Read options such as `fan-in=4`. Raises BadParameter for one without a name or a value."""
    found: dict[str, str] = {}
    for text in given or ():
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value:
            raise typer.BadParameter(f"expected name=value, such as fan-in=4, found {text!r}", param_hint=option)
        found[name] = value
    return found
