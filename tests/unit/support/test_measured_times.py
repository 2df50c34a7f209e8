"""No clock decides a test: benches measure how long something takes, and tests wait for conditions."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_nodes import Nodes, nodes_of

TESTS = Path(__file__).resolve().parents[2]
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}
MAY_COMPARE = re.compile(rf"\bassert\b.*\bscaled\(|\b(?:{'|'.join(sorted(CLOCKS))})\(")
"""What the text of a file with such an assertion has; the others need not be parsed."""

BOUNDED = {"property/test_hostile_bytes.py": "CPU time of one damaged input; an endless one has no other end"}
"""Files that may bound a measured time, with the reason."""


def upper_bounds(nodes: Nodes) -> Iterator[int]:
    """Yield the lines that assert that a measured time is short; a slow machine makes it long, so long ones may be."""
    for function in (*nodes[ast.FunctionDef], *nodes[ast.AsyncFunctionDef]):
        measured: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and _is_measured(node.value, measured):
                measured |= {part.id for part in ast.walk(node.targets[0]) if isinstance(part, ast.Name)}
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                yield from (node.lineno for test in ast.walk(node.test) if _bounds_a_time(test, measured))


def _bounds_a_time(node: ast.AST, measured: set[str]) -> bool:
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        pairs = {ast.Lt: (left, right), ast.LtE: (left, right), ast.Gt: (right, left), ast.GtE: (right, left)}
        smaller, larger = pairs.get(type(operator), (None, None))
        if smaller and (_is_measured(smaller, measured) or _is_scaled(larger)):
            return True
    return False


def _is_scaled(node: ast.expr | None) -> bool:
    return any(_called(part) == "scaled" for part in ast.walk(node)) if node else False


def _is_measured(node: ast.AST, measured: set[str]) -> bool:
    """Return whether a value grows with the time that something took; as a divisor it shrinks."""
    if isinstance(node, ast.Name):
        return node.id in measured
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Sub) and _called(node.left) in CLOCKS:
            return True
        return _is_measured(node.left, measured) or (
            not isinstance(node.op, ast.Div | ast.Sub) and _is_measured(node.right, measured)
        )
    return any(_is_measured(part, measured) for part in ast.iter_child_nodes(node))


def _called(node: ast.AST) -> str:
    called = node.func if isinstance(node, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def test_no_test_fails_because_something_took_long() -> None:
    files = [file for file in TESTS.rglob("*.py") if "bench" not in file.parts]
    texts = {str(file.relative_to(TESTS)): file.read_text("utf-8") for file in files}
    found = {
        file: lines
        for file, text in texts.items()
        if MAY_COMPARE.search(text) and (lines := list(upper_bounds(nodes_of(text))))
    }
    assert found.keys() == BOUNDED.keys(), found


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("assert time.monotonic() - began < 5", True),
        ("assert 5 >= time.process_time() - began", True),
        ("took_s = round(time.monotonic() - began, 2); assert took_s < LIMIT", True),
        ("took['x'] = time.monotonic() - began; assert max(took.values()) < 2", True),
        ("assert figures['first paint'] < scaled(2)", True),
        ("assert time.monotonic() - began >= 0.1", False),
        ("assert used_s / (time.monotonic() - began) <= 0.2", False),
        ("assert process.wait(scaled(5)) == 0", False),
    ],
)
def test_only_an_upper_bound_of_a_measured_time_is_found(line: str, is_found: bool) -> None:
    assert bool(MAY_COMPARE.search(line))
    assert bool(list(upper_bounds(nodes_of(f"def test_it():\n    {line}\n")))) == is_found
