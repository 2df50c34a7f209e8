"""Time limits of tests follow the machine, none escapes, and no clock decides a test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_nodes import Nodes, nodes_of
from tests.support.time_limits import MOST, NOMINAL_SPIN_S, VARIABLE, factor_of, scaled

TESTS = Path(__file__).resolve().parents[2]
LIMITS = {"timeout", "timeout_s", "socket_timeout"}
WAITS = {"wait": 0, "join": 0, "result": 0, "wait_for": 1, "timeout": 0}
FIXED = r"[\s(]*[\dA-Z]"
HAS_A_LIMIT = r"\bhttpx\.(?:Client|delete|get|head|patch|post|put|request|stream)\("
"""Calls that wait five seconds if no other limit is given."""
MAY_WAIT = re.compile(
    rf"{HAS_A_LIMIT}|monotonic|\bwait_for\(|\b(?:{'|'.join(sorted(LIMITS))})\s*={FIXED}"
    rf"|\b(?:{'|'.join(sorted(WAITS.keys() - {'wait_for'}))})\({FIXED}"
)
"""What the text of a file with such a limit has; the others need not be parsed."""
SCALES_ITSELF = {"until", "wait", "pytest.mark.timeout"}
PAUSES = "_EVERY_S"
SHORTEST_LIMIT_S = 1.0
"""Less is a pause between two looks, or a limit that is itself under test."""


@pytest.mark.parametrize(
    ("spin", "load", "expected"),
    [
        (NOMINAL_SPIN_S, 0.5, 1.0),
        (NOMINAL_SPIN_S / 2, 0.0, 1.0),
        (3 * NOMINAL_SPIN_S, 1.0, 3.0),
        (NOMINAL_SPIN_S, 8.0, 8.0),
        (1_000.0, 1_000.0, MOST),
    ],
)
def test_the_slower_or_busier_the_machine_the_longer_the_limits(spin: float, load: float, expected: float) -> None:
    assert factor_of(spin, load) == pytest.approx(expected)


def test_the_environment_chooses_the_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2.5")
    assert scaled(10) == 25


def test_pytests_own_limits_are_scaled_too(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv(VARIABLE, "3")
    pytester.makeini("[pytest]\ntimeout = 20")
    pytester.makeconftest('pytest_plugins = ["tests.support.scaled_timeouts"]')
    pytester.makepyfile(
        """
        import pytest

        def limit(request):
            return request.node.get_closest_marker("timeout").args[0]

        def test_of_the_ini_file(request):
            assert limit(request) == 60

        @pytest.mark.timeout(5, func_only=True)
        def test_of_a_marker(request):
            assert limit(request) == 15
            assert request.node.get_closest_marker("timeout").kwargs == {"func_only": True}
        """
    )
    pytester.runpytest_inprocess("-p", "pytest_timeout").assert_outcomes(passed=2)


def unscaled_limits(nodes: Nodes) -> Iterator[int]:
    """Yield the lines that wait at most a time that is written there."""
    for node in nodes[ast.BinOp]:
        if isinstance(node.left, ast.Call) and _name(node.left) == "monotonic" and _is_fixed(node.right):
            yield node.lineno
    for node in nodes[ast.Call]:
        limits = [word.value for word in node.keywords if word.arg in LIMITS]
        if not limits and re.fullmatch(HAS_A_LIMIT, f"{ast.unparse(node.func)}("):
            yield node.lineno
        waits = _name(node) in WAITS and not _is_of_text(node)
        limits += node.args[(at := WAITS[_name(node)]) : at + 1] if waits else []
        if any(map(_is_fixed, limits)) and not _scales_itself(node):
            yield node.lineno


def _is_of_text(call: ast.Call) -> bool:
    """A method of a literal text, as `join`, waits for nothing."""
    return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _scales_itself(call: ast.Call) -> bool:
    return ast.unparse(call.func) in SCALES_ITSELF


def _is_fixed(limit: ast.expr) -> bool:
    if isinstance(limit, ast.Constant):
        return isinstance(limit.value, int | float) and limit.value >= SHORTEST_LIMIT_S
    return isinstance(limit, ast.Name) and limit.id.isupper() and not limit.id.endswith(PAUSES)


def test_no_limit_of_a_test_is_a_fixed_time() -> None:
    """Each goes through `scaled` or `until`; only benchmarks measure, and wait as long as they wait."""
    files = [file for file in TESTS.rglob("*.py") if "bench" not in file.parts]
    texts = {file.relative_to(TESTS): file.read_text("utf-8") for file in files}
    found = [
        f"{file}:{line}"
        for file, text in texts.items()
        if MAY_WAIT.search(text)
        for line in unscaled_limits(nodes_of(text))
    ]
    assert len(files) > 100
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "done.wait(5)",
        "run(a, timeout=30)",
        "thread.join( LIMIT_S)",
        "wait_for(a, 5)",
        "until = monotonic() + 10",
        "httpx.get(a)",
    ],
)
def test_a_fixed_time_is_found_in_the_text_and_in_the_syntax(line: str) -> None:
    assert MAY_WAIT.search(line)
    assert list(unscaled_limits(nodes_of(line))) == [1]


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
