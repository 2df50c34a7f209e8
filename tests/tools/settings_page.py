"""docs/settings.md is written from the settings themselves, so that it cannot tell anything else.

`python -m tests.tools.settings_page` prints the page; a test compares it with the one that is there.
"""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "settings.md"
PREFIXES = ("LAKEWRIGHT_", "OTEL_")
HEAD = """# Settings

Every service reads its settings from environment variables only. With an invalid value it does not start: the error
names the variable and the values it accepts. Per-table configuration is in the table properties:
[properties.md](properties.md).
"""
SECTIONS = {
    "services/settings.py": "Deciders, command line, and common settings",
    "services/decider/settings.py": "Deciders",
    "services/actor/settings.py": "Actors",
}


def page() -> str:
    """Return the page as it has to be."""
    parts = [HEAD]
    for path, title in SECTIONS.items():
        rows = list(variables(ROOT / path))
        if rows:
            parts.append(f"## {title}\n\n| variable | meaning |\n|---|---|\n" + "".join(rows))
    return "\n".join(parts)


def variables(path: Path) -> Iterator[str]:
    """Yield a row for each constant of a module that names a variable and has a docstring behind it."""
    if not path.exists():
        return
    body = ast.parse(path.read_text()).body
    for name, stated in pairwise(body):
        match name, stated:
            case ast.Assign(value=ast.Constant(value=str(variable))), ast.Expr(value=ast.Constant(value=str(text))):
                if variable.startswith(PREFIXES):
                    yield f"| `{variable}` | {' '.join(text.split()).replace('|', chr(92) + '|')} |\n"


if __name__ == "__main__":
    print(page(), end="")
