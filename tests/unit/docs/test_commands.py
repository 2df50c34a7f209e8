"""Every command that a page shows exists as it is written: arguments, options, targets, modules, routes and methods.

What they do is tested where they live; `tests/integration/test_documented_commands.py` runs those of README.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from services.cli.__main__ import app
from tests.support.live_decider import openapi_document

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`]+)`")
ROUTE = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE)\s+(/v1/[\w/{}.-]+)")
CALLED = re.compile(r"\b(?:localhost|127\.0\.0\.1|lakewright\.example\.com):?\d*(/v1/[\w/.-]+)")
TARGETS = re.compile(r"^([\w%-]+(?: [\w%-]+)*) *:(?!=)", re.MULTILINE)
COMMAND = typer.main.get_command(app)


def blocks(page: Path) -> Iterator[str]:
    """Yield the lines of code blocks that begin with a command of ours; continued lines are joined."""
    for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in ("", "sh", "console"):
            for line in text.replace("\\\n", " ").splitlines():
                yield line.strip().removeprefix("$ ")


def inline(page: Path) -> Iterator[str]:
    """Yield what stands in backticks, joined over line ends."""
    for text in INLINE.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        yield " ".join(text.split())


def words_of(line: str) -> list[str]:
    """Return the words of a command without variables before it, redirections and what follows `&`, `|` or `#`."""
    words = shlex.split(line.replace("[", "").replace("]", ""), comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    for end in ("&&", "&", "|", ">", "…"):
        words = words[: words.index(end)] if end in words else words
    return words


def problem(words: list[str], *, whole: bool) -> str | None:
    """Return why the command line refuses these words; arguments may be missing unless they are a whole command."""
    command: Any = COMMAND
    name = "lakewright"
    words = [word for word in words if word != "--json"]
    while hasattr(command, "list_commands") and words and not words[0].startswith("-"):
        found = command.get_command(typer.Context(command), words[0])
        if found is None:
            return f"{name} has no command {words[0]}"
        command, name, words = found, f"{name} {words[0]}", words[1:]
    if hasattr(command, "list_commands"):
        return None
    try:
        command.make_context(name, list(words))
    except typer.TyperException as error:
        is_missing = type(error).__name__ == "MissingParameter"
        return None if is_missing and not whole else f"{name}: {error}"
    return None


def wrong(line: str, *, whole: bool) -> str | None:
    if not re.match(r"([A-Z_]+=\S+ )*(lakewright|make|python -m) ", line):
        return None
    words = words_of(line)
    match words:
        case ["lakewright", *rest]:
            return problem(rest, whole=whole)
        case ["make", target, *_] if target not in targets() and not target.endswith("-NAME") and "=" not in target:
            return f"no target {target}"
        case ["python", "-m", module, *_] if module.split(".")[0] in ("services", "tests") and not find_spec(module):
            return f"no module {module}"
    return None


@cache
def targets() -> frozenset[str]:
    """Return the targets of the Makefile, with one for each suite and benchmark of `test-%` and `bench-%`."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {name for line in TARGETS.findall(text) for name in line.split()}
    suites, benches = (
        re.findall(rf"^{name} := (.*)$", text, re.MULTILINE)[0].split() for name in ("SUITES", "BENCHES")
    )
    return frozenset({*named, *(f"test-{name}" for name in suites), *(f"bench-{name}" for name in benches)})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_of_a_page_is_one_that_the_code_takes(page: Path) -> None:
    lines = [(line, True) for line in blocks(page)] + [(line, False) for line in inline(page)]
    found = {line: reason for line, whole in lines if (reason := wrong(line, whole=whole))}
    assert found == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_route_of_a_page_is_one_that_the_decider_serves(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    served = routes()
    named = {(method, re.sub(r"\{\w+\}", "name", path.rstrip("."))) for method, path in ROUTE.findall(text)}
    assert [
        one for one in named if not any(one[0] == method and matches(one[1], path) for method, path in served)
    ] == []
    called = {path.rstrip(".") for path in CALLED.findall(text)}
    assert [path for path in called if not any(matches(path, one) for _, one in served)] == []


@cache
def routes() -> frozenset[tuple[str, str]]:
    paths = openapi_document()["paths"]
    return frozenset(
        (method.upper(), re.sub(r"\{\w+\}", "{}", path)) for path, methods in paths.items() for method in methods
    )


def matches(path: str, route: str) -> bool:
    return bool(re.fullmatch(re.escape(route).replace(re.escape("{}"), "[^/]+"), path))


@pytest.mark.parametrize(
    "line",
    [
        "lakewright tables frobnicate",
        "lakewright optimize t --no-such",
        "make no-such-target",
        "python -m tests.no_such",
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    assert wrong(line, whole=True)


def test_a_command_without_its_argument_is_found_in_a_block_alone() -> None:
    assert wrong("lakewright tables show ", whole=True)
    assert wrong("lakewright tables show ", whole=False) is None
