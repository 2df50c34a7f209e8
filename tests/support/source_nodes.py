"""Syntax nodes of Python sources by type; many tests search all files, so each is parsed once in a session."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

Nodes = defaultdict[type[ast.AST], list[Any]]
"""The nodes of a module by their exact type, without contexts such as `ast.Load`; to be read only."""


def nodes_of(source: str) -> Nodes:
    """Return the nodes of a module; raises SyntaxError."""
    found: Nodes = defaultdict(list)
    todo: list[Any] = [ast.parse(source)]
    while todo:  # As `ast.walk` does it, in half the time.
        node = todo.pop()
        found[type(node)].append(node)
        for value in vars(node).values():
            if type(value) is list:
                todo += [one for one in reversed(value) if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                todo.append(value)
    return found


@cache
def nodes_in(path: Path) -> Nodes:
    """Return the nodes of a file."""
    return nodes_of(path.read_text(encoding="utf-8"))
