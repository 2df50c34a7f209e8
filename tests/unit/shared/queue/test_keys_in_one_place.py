"""A key of Redis is spelled in `shared/queue/keys.py` and nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_nodes import Nodes, nodes_in, nodes_of

ROOT = Path(__file__).resolve().parents[4]
KEYS = Path("shared/queue/keys.py")
ROOMS = ("shared", "decider", "actor", "services")

COMMANDS = re.compile(
    r"delete|exists|p?expire|p?ttl|type|unlink|watch|rename|scan_iter"
    r"|get|set|setex|psetex|h[a-z]+|s(?:add|members|rem|ismember)|x[a-z]+|z[a-z]+"
)
"""Commands whose first argument is a key, or a pattern of keys."""

CONNECTIONS = ("redis", "pipe", "pipeline", "client")
"""How connections and pipelines are called."""


def offences(path: Path, nodes: Nodes) -> Iterator[str]:
    """Yield what spells a key, or the beginning of one."""
    for node in nodes[ast.Constant]:
        if isinstance(node.value, str) and "lw:" in node.value:
            yield f"{path}:{node.lineno}: the text {node.value[:60]!r}"
    for node in nodes[ast.Call]:
        if isinstance(node.func, ast.Attribute) and node.args and COMMANDS.fullmatch(node.func.attr):
            first = node.args[0]
            is_text = isinstance(first, ast.JoinedStr | ast.BinOp) or (
                isinstance(first, ast.Constant) and isinstance(first.value, str)
            )
            if not is_text or ast.unparse(first).lstrip("f'\"").startswith("/"):
                continue  # A path of a URL is no key.
            connection = ast.unparse(node.func.value).rsplit(".", 1)[-1].lstrip("_")
            if connection in CONNECTIONS:
                yield f"{path}:{node.lineno}: {ast.unparse(node)[:80]}"
    for node in nodes[ast.Attribute]:
        if node.attr == "prefix" and ast.unparse(node) == "keys.prefix" and path.parts[0] != "shared":
            yield f"{path}:{node.lineno}: the prefix of all keys"


def test_no_other_module_spells_a_key() -> None:
    paths = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    assert len(paths) > 200
    found = [
        offence
        for path in paths
        if path.relative_to(ROOT) != KEYS
        for offence in offences(path.relative_to(ROOT), nodes_in(path))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        'KEY = "lw:tables"',
        'f"{{lw:{queue}}}:cfg"',
        'self._redis.hget("tables", one)',
        'pipe.set(f"{name}:lease", 1)',
        'queue.redis.zrem(keys.config(name) + ":x", 1)',
        'start = keys.prefix(name) + "f:"',
    ],
)
def test_the_search_finds_what_it_is_for(source: str) -> None:
    assert list(offences(Path("decider/store/some.py"), nodes_of(source)))
