"""Advice to vacuum: where files that no version needs are kept again and again, and not after a single load."""

import random

import pytest

from decider.advice.analysis import former_values, is_in_force
from decider.advice.vacuum_advice import analyze_vacuum, judge_vacuum, may_be_vacuumed
from decider.formats.table_format import Deletion, VacuumPreview
from decider.store.tables.advice_records import Advice
from decider.whatif.comparison import CostModel
from decider.whatif.trace_reader import TableTrace
from shared.policy.policy import GIB, MIB, Policy
from shared.refusals import Refusal, RefusalCode
from shared.table import TableId
from tests.support.removing_history import COMMITS, HOUR_MS, history, policy

T, PRICES, DAY_MS = TableId("t"), CostModel(), 86_400_000
NOW_MS = (COMMITS - 1) * HOUR_MS


def preview(files: int, size: int = GIB) -> VacuumPreview:
    return VacuumPreview(9, NOW_MS - 7 * DAY_MS, tuple(Deletion(f"g{n}", size) for n in range(files)))


def advised(trace: TableTrace, found: VacuumPreview, known: Policy | None = None) -> Advice | None:
    known = known or policy()
    now_ms = trace.history.commits[-1].timestamp_ms
    if not may_be_vacuumed(trace, known, PRICES, now_ms):
        return None
    return analyze_vacuum(T, trace, known, found, PRICES, now_ms)


TEN = {
    "as much as is live": (history(), preview(10), True),
    "many times what is live": (history(), preview(400), True),
    "some": (history(), preview(2), True),
    "small files": (history(), preview(20_000, MIB), True),
    "less in one half": (history(only=range(30, COMMITS)), preview(20), True),
    "little beside what is live": (history(initial_bytes=10 * GIB), preview(1), False),
    "nothing": (history(), preview(0), False),
    "a single load was replaced": (history(only=range(10, 20)), preview(100), False),
    "once much, and little since": (history(2 * GIB, only=range(50), others=10 * MIB), preview(10), False),
    "next to nothing is removed": (history(100), preview(100), False),
}


@pytest.mark.parametrize(("trace", "found", "is_advised"), TEN.values(), ids=TEN)
def test_of_ten_histories_a_vacuum_is_advised_where_files_are_kept_again_and_again(
    trace: TableTrace,
    found: VacuumPreview,
    is_advised: bool,
) -> None:
    advice = advised(trace, found)
    assert (None if advice is None else advice.change) == ({"lakewright.vacuum": "on"} if is_advised else None)


@pytest.mark.parametrize(
    ("trace", "known"),
    [
        pytest.param(history(), policy(vacuum="on"), id="on"),
        pytest.param(history(), policy(enabled="false"), id="off"),
        pytest.param(history(commits=49), policy(), id="too few commits"),
        pytest.param(history(every_ms=60_000), policy(), id="hours"),
        pytest.param(history(refusal=Refusal(RefusalCode.QBEAST, "t", "no", "none")), policy(), id="refused"),
    ],
)
def test_a_store_is_not_asked_without_ground(trace: TableTrace, known: Policy) -> None:
    assert advised(trace, preview(100), known) is None


def test_of_a_hundred_random_short_histories_no_vacuum_is_advised() -> None:
    dice = random.Random(3)
    for _ in range(100):
        commits = dice.randrange(2, COMMITS)
        trace = history(dice.randrange(10 * GIB), commits=commits, every_ms=dice.randrange(50, 23 * HOUR_MS // commits))
        assert advised(trace, preview(dice.randrange(1_000))) is None


def test_the_proof_states_what_is_held_and_what_that_costs() -> None:
    found = advised(history(), preview(10))
    assert found is not None
    held, proof = found.proof.held, found.proof
    assert held is not None
    assert (held.files, held.bytes, held.retention_s) == (10, 10 * GIB, 7 * 86_400)
    assert proof.current.cost_s == pytest.approx(20 * 68 * proof.hours / 24)
    assert (proof.current.storage_s, proof.saved_share) == (proof.current.cost_s, pytest.approx(0.5))
    assert proof.saved_s_per_day == pytest.approx(680)
    assert "10 files with 10 GiB that no version of the last 7 days needs" in found.message
    assert "Older versions cannot be read" in found.message
    assert former_values(found) == {"lakewright.vacuum": "false"}
    assert Advice.decode(found.encode()) == found
    assert is_in_force(found.change, policy(vacuum="on"))


def test_a_vacuum_is_judged_by_what_is_left() -> None:
    found = advised(history(), preview(10))
    assert found is not None
    held = found.proof.held
    assert held is not None
    done, undone = (judge_vacuum(found, held, history(), preview(files), PRICES, NOW_MS) for files in (0, 10))
    assert done is not None
    assert undone is not None
    assert (done.saved_share, done.predicted_share) == (pytest.approx(0.5), found.proof.saved_share)
    assert (undone.saved_share, undone.advised_s) == (0.0, done.actual_s)
    assert judge_vacuum(found, held, history(commits=49), preview(0), PRICES, NOW_MS) is None
