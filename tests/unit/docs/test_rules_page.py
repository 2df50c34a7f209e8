"""docs/rules.md names a function and a test for each rule, SECURITY.md a test for each defense: every one exists."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "rules.md"
NAMED = re.compile(r"`([\w/.-]+\.(?:py|lua))(?:::([\w.]+))?`")
RULES = sorted(set(NAMED.findall(PAGE.read_text())))


def python_names(body: list[ast.stmt], above: str = "") -> Iterator[str]:
    """Yield the functions, classes, methods and constants of a module, methods with the name of their class."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield above + node.name
        elif isinstance(node, ast.ClassDef):
            yield node.name
            yield from python_names(node.body, f"{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (above + target.id for target in targets if isinstance(target, ast.Name))


@cache
def names(path: str) -> frozenset[str]:
    text = (ROOT / path).read_text()
    if path.endswith(".py"):
        return frozenset(python_names(ast.parse(text).body))
    functions = re.findall(r"^ *local function (\w+)", text, re.MULTILINE)
    locals_ = re.findall(r"^local ([\w, ]+)", text, re.MULTILINE)
    return frozenset((*functions, *(name.strip() for line in locals_ for name in line.split(","))))


def missing(named: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{path}::{name}" for path, name in named if not (ROOT / path).is_file() or (name and name not in names(path))
    ]


def test_each_name_on_the_page_exists() -> None:
    assert len(RULES) > 100
    assert not missing(RULES)


def test_each_defense_has_a_test_that_exists() -> None:
    _, _, table = (ROOT / "SECURITY.md").read_text().partition("| attack | defense | test |\n|---|---|---|\n")
    rows = [row.strip("|").split(" | ") for row in table.partition("\n\n")[0].splitlines()]
    assert len(rows) > 20
    for attack, _, tests in rows:
        found = NAMED.findall(tests)
        assert found, attack
        assert all(path.startswith("tests/") and name.startswith("test_") for path, name in found), attack
        assert not missing(found), attack


def used_names() -> Counter[str]:
    """Count the words of the product's code; a docstring that names a function does not use it."""
    found: Counter[str] = Counter()
    for folder in ("actor", "decider", "services", "shared"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name):
                        found[name] += 1
                    case ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                        found[name] += 1
        for path in (ROOT / folder).rglob("*.lua"):
            found.update(re.findall(r"\w+", path.read_text()))
    return found


def test_each_rule_is_decided_by_code_that_the_product_uses() -> None:
    """What only tests call decides nothing, while a copy of it does."""
    used = used_names()
    idle = [
        f"{path}::{name}"
        for path, name in RULES
        if name and not path.startswith("tests/") and used[name.rpartition(".")[2]] < 2
    ]
    assert not idle


def test_each_rule_has_its_sentence_its_place_and_its_test() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("|--")]
    assert len(rows) >= 45
    for row in rows:
        parts = [part.strip() for part in row.strip("|").split(" | ")]
        if parts[0] == "subject":
            continue
        assert len(parts) == 4, row
        assert all(parts), row
        *_, places, tests = parts
        assert NAMED.search(places), row
        assert all(path.startswith("tests/") and name.startswith("test_") for path, name in NAMED.findall(tests)), row
        assert NAMED.search(tests), row


def test_the_readme_and_the_guides_lead_to_the_page() -> None:
    for guide, link in (("README.md", "docs/rules.md"), ("CONTRIBUTING.md", "docs/rules.md")):
        assert f"]({link})" in (ROOT / guide).read_text(), guide
    assert "](rules.md)" in (ROOT / "docs" / "architecture.md").read_text()
