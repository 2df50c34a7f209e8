"""A function takes the policy only if it needs several of its values; most of the planner takes what it uses."""

import ast
from collections.abc import Iterator
from pathlib import Path

LAYOUT = Path(__file__).resolve().parents[4] / "shared" / "layout"
MOST = 17
"""Functions that `plan_rewrite` hands its policy to, itself included: half of those that once did."""


def functions() -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for path in sorted(LAYOUT.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
    return found


def handed_on(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names of the functions that a function calls with its policy."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(isinstance(one, ast.Name) and one.id == "policy" for one in given):
                yield node.func.id


def test_at_most_half_of_the_planner_takes_the_policy() -> None:
    known, waiting, reached = functions(), ["plan_rewrite"], set[str]()
    while waiting:
        name = waiting.pop()
        if name in known and name not in reached:
            reached.add(name)
            waiting += [one for function in known[name] for one in handed_on(function)]
    assert {"plan", "plan_full", "evaluate_layout", "select_groups"} <= reached, "the path is followed"
    assert len(reached) <= MOST, sorted(reached)
