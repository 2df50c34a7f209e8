"""The simulation serves every job once under both rules, and fair queueing shields the small tenants."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

from services.cli.charts.queue_chart import ORDERS, picture
from services.cli.charts.simulation import Arrival, ArrivalLoad, Served, arrivals, fair, fifo, outcome

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("rule", [fifo, fair])
def test_one_slot_serves_one_job_after_the_other(rule: Callable[..., Served]) -> None:
    jobs = (Arrival(0.0, 0, 10.0), Arrival(1.0, 1, 1.0))
    assert rule(ArrivalLoad(tenants=2, slots=1), jobs) == [(0.0, jobs[0]), (10.0, jobs[1])]


def test_dwell_is_from_arrival_to_end_and_a_small_tenant_does_not_wait_behind_the_backlog_of_a_large_one() -> None:
    load = ArrivalLoad(tenants=2, slots=1)
    jobs = (*(Arrival(0.0, 0, 1.0) for _ in range(100)), Arrival(0.5, 1, 1.0))
    assert outcome(load, jobs, fifo).dwell[1].p50_s == 100.5
    assert outcome(load, jobs, fair).dwell[1].p50_s == 1.5


def test_zipfs_small_tenants_are_done_sooner_under_fair_queueing() -> None:
    load = ArrivalLoad(load=1.0, seed=3)
    drawn = arrivals(load)
    first, shared = outcome(load, drawn, fifo), outcome(load, drawn, fair)
    assert first.jain < 0.9
    assert shared.jain > 0.99
    assert all(b.p95_s < a.p95_s for a, b in zip(first.dwell[2:], shared.dwell[2:], strict=True))


@pytest.mark.parametrize("tenants", [2, 8, 50])
def test_the_picture_shows_p50_p95_and_jains_index_of_both_orders(tenants: int) -> None:
    """Every mark says in its title what it stands for, and lies where its value is: a greater dwell is higher."""
    load = ArrivalLoad(tenants=tenants, jobs=500)
    drawn = arrivals(load)
    first, shared = outcome(load, drawn, fifo), outcome(load, drawn, fair)
    drawing = ET.fromstring(picture(load, first, shared))  # noqa: S314 - our own text
    titles = [one.text for one in drawing.iter(f"{SVG}title")]
    for (_, words), result in zip(ORDERS, (first, shared), strict=True):
        assert f"{words}: {result.jain:.3f}" in titles
        for number, one in enumerate(result.dwell):
            assert f"tenant {number + 1}, {words}: p50 {one.p50_s:.1f} s, p95 {one.p95_s:.1f} s" in titles
    heights = []
    dwells = [one for pair in zip(first.dwell, shared.dwell, strict=True) for one in pair]
    for mark, one in zip(drawing.iterfind(f"{SVG}g"), dwells, strict=True):
        dot, end = mark.find(f"{SVG}circle"), mark.find(f"{SVG}line[2]")
        assert dot is not None
        assert end is not None
        heights += [(one.p50_s, -float(dot.attrib["cy"])), (one.p95_s, -float(end.attrib["y1"]))]
    ranked = [height for _, height in sorted(heights)]
    assert ranked == sorted(ranked)
