"""`--help` of a service that is configured by its environment: every variable that it reads, with its meaning."""

import argparse
import ast
import inspect
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType

_PREFIXES = ("LAKEWRIGHT_", "OTEL_")
_WIDTH = 100


def parse_no_arguments(arguments: Sequence[str], *, service: str, settings: ModuleType, also: Sequence[str]) -> None:
    """Answer `--help` and refuse all other arguments; both end the process.

    settings: module that reads the service's variables; those that it names are listed. also: further names.
    """
    parser = argparse.ArgumentParser(
        prog=f"lakewright {service}",
        description=f"Run the {service} until SIGTERM or Ctrl-C.",
        epilog=_epilog(settings, also),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args(arguments)


def _epilog(settings: ModuleType, also: Sequence[str]) -> str:
    meanings = _meanings(settings)
    own = {value for value in vars(settings).values() if isinstance(value, str) and value in meanings}
    lines = ["settings, as environment variables:"]
    for name in sorted(own | {*also}):
        lines.append(f"  {name}")
        lines += textwrap.wrap(meanings[name], _WIDTH, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines)


def _meanings(settings: ModuleType) -> dict[str, str]:
    """Return the text below each variable's constant, in this module and the one that all services share."""
    from services import settings as shared  # noqa: PLC0415 - for its source alone

    found = {}
    for module in (shared, settings):
        body = ast.parse(inspect.getsource(module)).body
        for one, following in pairwise(body):
            match one, following:
                case (
                    ast.Assign(value=ast.Constant(value=str(name))),
                    ast.Expr(value=ast.Constant(value=str(meaning))),
                ) if name.startswith(_PREFIXES):
                    found[name] = " ".join(meaning.split())
    return found
