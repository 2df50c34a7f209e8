"""What the end of a run means for the advice whose properties it was to set."""

import json
from dataclasses import replace

import pytest

from decider.background.applied_advice import CANCELLED_WAITING, ENDED_WITHOUT, after_cancel, after_run
from decider.store.tables.advice_records import Advice, AdviceStatus, Evidence, ReplayedCost
from shared.table import TableId

COST = ReplayedCost(1.0, 1.0, 1.0, 1)
APPLYING = Advice(
    *(TableId("t"), 5, {"lakewright.fan-in": "4"}, "", "Set it.", Evidence(0, 9, 10, 2.0, 1.0, COST, COST, 0.5)),
    status=AdviceStatus.APPLYING,
    job="t.set_properties",
)


@pytest.mark.parametrize(
    ("run", "version"),
    [
        ({"outcome": "deleted", "result": {"measured": {"changed": 2}, "versions": [81], "seen_version": 80}}, 81),
        # A request that joined the running job brings it back: the table is altered all the same.
        ({"outcome": "requeued", "result": {"measured": {"changed": 2}, "versions": [81], "seen_version": 80}}, 81),
        ({"outcome": "deleted", "result": {"measured": {"changed": 0}, "versions": [], "seen_version": 80}}, 80),
        ({"outcome": "deleted", "result": {"measured": {"changed": 0}}}, -1),
    ],
)
def test_a_run_after_which_the_table_has_the_properties_applies_the_advice(run: dict, version: int) -> None:
    now = after_run(APPLYING, run | {"result": json.dumps(run["result"])}, 77)
    assert now is not None
    assert (now.status, now.applied_version, now.changed_ms, now.problem) == (AdviceStatus.APPLIED, version, 77, "")


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        ({"outcome": "quarantined", "result": "", "error": "no permission"}, "no permission"),
        ({"outcome": "deleted", "result": json.dumps({"measured": {}, "left_out": "changed"}), "error": ""}, "changed"),
        ({"outcome": "deleted", "result": "{"}, ENDED_WITHOUT),
        ({"outcome": "deleted", "result": "[]"}, ENDED_WITHOUT),
    ],
)
def test_a_run_that_ended_without_leaves_the_advice_open_with_the_reason(run: dict, problem: str) -> None:
    now = after_run(APPLYING, run, 77)
    assert now is not None
    assert (now.status, now.job, now.problem, now.changed_ms) == (AdviceStatus.OPEN, "", problem, 0)


@pytest.mark.parametrize("outcome", ["requeued", "delayed"])
def test_a_run_that_is_tried_again_decides_nothing(outcome: str) -> None:
    assert after_run(APPLYING, {"outcome": outcome, "result": "", "error": "throttled"}, 77) is None


def test_a_cancelled_job_opens_the_advice_that_waited_for_it_and_no_other() -> None:
    opened = after_cancel(APPLYING, APPLYING.job)
    assert opened is not None
    assert (opened.status, opened.job, opened.problem, opened.changed_ms) == (
        AdviceStatus.OPEN,
        "",
        CANCELLED_WAITING,
        0,
    )
    assert after_cancel(APPLYING, "t.another.set_properties") is None
    assert after_cancel(replace(APPLYING, status=AdviceStatus.APPLIED), APPLYING.job) is None
