"""Time limits of tests follow the machine, and none escapes."""

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
MAY_WAIT = re.compile(
    rf"monotonic|\bwait_for\(|\b(?:{'|'.join(sorted(LIMITS))})\s*={FIXED}"
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
    ["done.wait(5)", "run(a, timeout=30)", "thread.join( LIMIT_S)", "wait_for(a, 5)", "until = monotonic() + 10"],
)
def test_a_fixed_time_is_found_in_the_text_and_in_the_syntax(line: str) -> None:
    assert MAY_WAIT.search(line)
    assert list(unscaled_limits(nodes_of(line))) == [1]
