"""docs/rules.md names a function and a test for each rule: every one of them exists."""

import ast
import re
from collections.abc import Iterator
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
    functions = re.findall(r"^local function (\w+)", text, re.MULTILINE)
    locals_ = re.findall(r"^local ([\w, ]+)", text, re.MULTILINE)
    return frozenset((*functions, *(name.strip() for line in locals_ for name in line.split(","))))


def test_each_name_on_the_page_exists() -> None:
    assert len(RULES) > 100
    missing = [
        f"{path}::{name}" for path, name in RULES if not (ROOT / path).is_file() or (name and name not in names(path))
    ]
    assert not missing


def test_each_rule_has_its_sentence_its_place_and_its_test() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("|--")]
    assert len(rows) >= 45
    for row in rows:
        parts = [part.strip() for part in row.strip("|").split(" | ")]
        if parts[0] in ("question", "to add"):
            continue
        assert len(parts) in (3, 4), row
        assert all(parts), row
        *_, places, tests = parts
        assert NAMED.search(places), row
        assert all(path.startswith("tests/") and name.startswith("test_") for path, name in NAMED.findall(tests)), row
        assert NAMED.search(tests), row


def test_the_readme_and_the_guides_lead_to_the_page() -> None:
    for guide, link in (("README.md", "docs/rules.md"), ("CONTRIBUTING.md", "docs/rules.md")):
        assert f"]({link})" in (ROOT / guide).read_text(), guide
    assert "](rules.md)" in (ROOT / "docs" / "architecture.md").read_text()
