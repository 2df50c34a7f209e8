"""The simulation serves every job once under both rules, and fair queueing shields the small tenants."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

from services.cli.simulation import Arrival, Load, Served, arrivals, fair, fifo, outcome, picture


@pytest.mark.parametrize("rule", [fifo, fair])
def test_one_slot_serves_one_job_after_the_other(rule: Callable[..., Served]) -> None:
    jobs = (Arrival(0.0, 0, 10.0), Arrival(1.0, 1, 1.0))
    assert rule(Load(tenants=2, slots=1), jobs) == [(0.0, jobs[0]), (10.0, jobs[1])]


def test_a_small_tenant_does_not_wait_behind_the_backlog_of_a_large_one() -> None:
    load = Load(tenants=2, slots=1)
    jobs = (*(Arrival(0.0, 0, 1.0) for _ in range(100)), Arrival(0.5, 1, 1.0))
    assert outcome(load, jobs, fifo).waits[1].p50_s == 99.5
    assert outcome(load, jobs, fair).waits[1].p50_s == 0.5


def test_zipfs_small_tenants_wait_less_under_fair_queueing_and_the_picture_can_be_drawn() -> None:
    load = Load(load=1.0, seed=3)
    drawn = arrivals(load)
    first, shared = outcome(load, drawn, fifo), outcome(load, drawn, fair)
    assert first.jain < 0.9
    assert shared.jain > 0.99
    assert all(b.p95_s < a.p95_s for a, b in zip(first.waits[2:], shared.waits[2:], strict=True))
    drawing = ET.fromstring(picture(first, shared))  # noqa: S314 - our own text
    assert len(drawing.findall("{http://www.w3.org/2000/svg}rect")) == 2 * load.tenants
