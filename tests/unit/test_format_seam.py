"""Outside its folders no one knows what a format calls its things; an import law holds the imports, this the words."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.source_nodes import Nodes, nodes_in, nodes_of

ROOT = Path(__file__).parents[2]

FOLDERS = (
    *("decider/formats/delta/", "actor/formats/delta/", "actor/formats/qbeast/"),
    *("shared/formats/delta", "shared/formats/qbeast"),
)

CONCEPTS = re.compile(
    r"_delta_log|_last_checkpoint|\.crc\b|\bdelta\.[a-zA-Z]|spark\.databricks|io\.delta"
    r"|deletionVector|dataChange|userMetadata|metaData|commitInfo|partitionValues"
)
"""Names that exist in Delta alone: of its log, its actions, its properties and its classes."""

EXCEPTIONS = {
    "actor/jvm/": "the JVM of today's one engine: its jars, classes, session and log stores are Delta's",
    "decider/api/event_examples.py": "examples of what object stores send for a Delta table",
    "decider/events/object_keys.py": "object stores name the written key, which is how a Delta commit is recognized",
    "services/demo/": "the demo writes a table of its own",
    "shared/policy/action_properties.py": "Delta's own table properties are understood as ours",
    "shared/paths/boundary.py": "a log behind a link leads out of the table as data files do",
    "shared/policy/property_table.py": "Delta's own table properties are understood as ours",
}


def sources() -> Iterator[Path]:
    for package in ("decider", "actor", "shared", "services"):
        yield from sorted((ROOT / package).rglob("*.py"))


def texts(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Yield the text constants of a module with their lines; docstrings explain and are left out."""
    prose = {id(node.value) for node in nodes[ast.Expr]}
    for node in nodes[ast.Constant]:
        if isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


@cache
def found() -> dict[str, list[str]]:
    """Return the places that name a concept of Delta, by file, outside its folders."""
    places: dict[str, list[str]] = {}
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(FOLDERS):
            for line, text in texts(nodes_in(path)):
                if match := CONCEPTS.search(text):
                    places.setdefault(name, []).append(f"{name}:{line}: {match[0]}")
    return places


def test_only_the_folders_of_a_format_know_its_concepts() -> None:
    wrong = [place for name, places in found().items() if not name.startswith(tuple(EXCEPTIONS)) for place in places]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_an_exception_is_needed(exception: str) -> None:
    assert any(name.startswith(exception) for name in found())


def test_concepts_are_found_in_code_and_not_in_prose() -> None:
    source = '"""The `_delta_log` of a table."""\nKEY = f"{x}/_delta_log"\n'
    assert [line for line, text in texts(nodes_of(source)) if CONCEPTS.search(text)] == [2]
