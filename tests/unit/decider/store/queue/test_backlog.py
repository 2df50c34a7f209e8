"""The prediction of a run's duration from measured runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.store.queue.backlog import DEFAULT_JOB_S, MIN_RUNS, fit_duration, measured_runs
from shared.queue.model import Band, JobId, JobKey, Token
from shared.queue.records import RunRecord

RUNS = st.lists(st.tuples(st.integers(1, 10**10), st.floats(0, 10_000)), min_size=MIN_RUNS, max_size=50)


def test_runs_on_a_line_give_that_line() -> None:
    found = fit_duration([(size, 2 + size / 1_000_000) for size in (0, 1_000_000, 5_000_000, 9_000_000, 20_000_000)])
    assert (found.job_s, found.s_per_byte) == (pytest.approx(2), pytest.approx(1 / 1_000_000))
    assert found.predict_s(3_000_000) == pytest.approx(5)


def test_too_few_runs_give_the_default() -> None:
    assert fit_duration([(1, 100.0)] * (MIN_RUNS - 1)).job_s == DEFAULT_JOB_S


def test_runs_of_one_size_give_their_mean() -> None:
    assert fit_duration([(7, 1.0), (7, 3.0)] * MIN_RUNS).predict_s(7) == pytest.approx(2)


def test_jobs_that_were_claimed_together_share_the_time_of_their_slot() -> None:
    def run(worker: str, started_ms: int, finished_ms: int, cost_bytes: int = 7) -> RunRecord:
        times = {"enqueued_at_ms": 0, "started_ms": started_ms, "finished_ms": finished_ms}
        names = {"worker": worker, "run_result": "done", "outcome": "done", "tenant": "", "result": "", "error": ""}
        key = JobKey("t", "{}", "compact")
        queued = {"band": Band.NORMAL, "token": Token(1), "attempts": 1, "version": 1}
        return RunRecord(entry_id="1-1", id=JobId("j"), key=key, cost_bytes=cost_bytes, **times, **names, **queued)

    together = [run("one", 1_000, 9_000 + n) for n in range(-7, 1)]
    assert measured_runs(together) == [(7, 1.0)] * 8
    alone = [run("one", 1_000, 9_000), run("two", 1_000, 9_000), run("one", 2_000, 3_000)]
    assert measured_runs(alone) == [(7, 8.0), (7, 8.0), (7, 1.0)]
    assert measured_runs([run("one", 1_000, 9_000), run("one", 1_000, 9_000, cost_bytes=0)]) == [(7, 4.0)]


@given(RUNS)
def test_no_prediction_is_negative_and_the_mean_run_is_predicted_exactly(runs: list[tuple[int, float]]) -> None:
    found = fit_duration(runs)
    assert found.job_s >= -1e-6
    assert found.s_per_byte >= 0
    mean_bytes = sum(size for size, _ in runs) / len(runs)
    mean_s = sum(took_s for _, took_s in runs) / len(runs)
    assert found.predict_s(mean_bytes) == pytest.approx(mean_s, abs=1e-6)
