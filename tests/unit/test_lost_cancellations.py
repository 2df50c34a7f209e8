"""A service that is ended ends: no await loses a cancellation."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_waits_by_a_function_that_can_lose_a_cancellation() -> None:
    """`asyncio.wait_for` of Python 3.11 returns a result that comes together with a cancellation, and goes on."""
    sources = [path for part in ("decider", "services", "shared") for path in (ROOT / part).rglob("*.py")]
    assert len(sources) > 300
    assert [str(path) for path in sources if "asyncio.wait_for(" in path.read_text(encoding="utf-8")] == []
