"""`NAME=VALUE` options of every command, read in one way: what is none is wrong use, exit code 2."""

from collections.abc import Iterable

import typer


def name_values(given: Iterable[str] | None, option: str = "--set") -> dict[str, str]:
    """Read options such as `fan-in=4`. Raises BadParameter for one without a name or a value."""
    found: dict[str, str] = {}
    for text in given or ():
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value:
            raise typer.BadParameter(f"expected name=value, such as fan-in=4, found {text!r}", param_hint=option)
        found[name] = value
    return found
