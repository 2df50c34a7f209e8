"""An outage is told once and then now and then, however many threads try."""

from structlog.testing import capture_logs

from actor.outage_log import OutageLog


def test_an_outage_is_logged_at_its_begin_every_half_minute_and_at_its_end() -> None:
    now_s = 0.0
    outage = OutageLog(every_s=30.0, clock_s=lambda: now_s)
    with capture_logs() as logs:
        for _ in range(61 * 3):
            outage.failed(error="refused")
            now_s += 1 / 3
        outage.succeeded()
        outage.succeeded()
    assert [(one["event"], one.get("for_s")) for one in logs] == [
        ("queue_unavailable", 0), ("queue_unavailable", 30), ("queue_unavailable", 60), ("queue_available", None),
    ]  # fmt: skip
    assert logs[-1]["failures"] == 183


def test_the_next_outage_is_logged_at_once() -> None:
    outage = OutageLog(clock_s=lambda: 0.0)
    with capture_logs() as logs:
        for _ in range(2):
            outage.failed(error="refused")
            outage.succeeded()
    assert [one["event"] for one in logs] == ["queue_unavailable", "queue_available"] * 2
