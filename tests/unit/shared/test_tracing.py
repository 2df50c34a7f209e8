"""What leads to what in a trace, and that nothing is recorded unless a tracer is installed."""

import pytest
from opentelemetry.trace import INVALID_SPAN

from shared import tracing
from shared.tracing import Attribute, Origin, SpanName, origin_of
from tests.support.recording_tracer import RecordingTracer

SAMPLED = [f"00-{1:032x}-{number:016x}-01" for number in range(1, 12)]
UNSAMPLED = f"00-{2:032x}-{9:016x}-00"


def test_without_a_tracer_nothing_is_recorded_and_nothing_is_current() -> None:
    assert not tracing.is_on()
    assert tracing.start(SpanName.RUN, Origin(SAMPLED[0]), {}) is INVALID_SPAN
    with tracing.span(SpanName.DECIDE, Origin(), {}) as outer, tracing.step(SpanName.DECIDE, {}) as inner:
        assert outer is inner is INVALID_SPAN
        assert tracing.current_contexts() == ()
        assert tracing.context_of(outer) == ""


def test_a_step_belongs_to_the_current_span_and_is_not_recorded_outside_of_one(tracer: RecordingTracer) -> None:
    with tracing.step(SpanName.DECIDE, {}) as outside:
        assert outside is INVALID_SPAN
    with tracing.span(SpanName.REFRESH, Origin(), {Attribute.TABLE: "orders"}) as outer:
        assert tracing.current_contexts() == (tracing.context_of(outer),)
        with tracing.step(SpanName.DECIDE, {}):
            pass
    first, second = tracer.spans
    assert (first.name, first.attributes, first.ended) == ("refresh table", {"lakewright.table": "orders"}, 1)
    assert second.origin == Origin(first.context)


def test_an_exception_ends_its_span_as_failed_by_its_class_and_not_its_text(tracer: RecordingTracer) -> None:
    with pytest.raises(ValueError, match="secret"), tracing.span(SpanName.REFRESH, Origin(), {}):
        raise ValueError("secret")
    (only,) = tracer.spans
    assert (only.failure, only.ended) == ("ValueError", 1)


def test_the_newest_sampled_context_is_the_parent_and_the_others_are_links() -> None:
    assert origin_of([]) == Origin()
    assert origin_of(SAMPLED[:1]) == Origin(SAMPLED[0])
    assert origin_of([*SAMPLED[:2], UNSAMPLED]) == Origin(SAMPLED[1], (SAMPLED[0], UNSAMPLED))
    assert origin_of([UNSAMPLED]) == Origin(UNSAMPLED)
    assert not tracing.is_sampled("")


def test_the_newest_contexts_are_kept_once_each() -> None:
    assert tracing.joined(SAMPLED[:2], SAMPLED[1:3]) == tuple(SAMPLED[:3])
    assert tracing.joined(SAMPLED[:9], SAMPLED[9:11]) == tuple(SAMPLED[3:11])


def test_attributes_are_bounded_and_empty_ones_left_out() -> None:
    long = {Attribute.PARTITION: "x" * 10_000, Attribute.TABLE: "", Attribute.VERSION: 0}
    assert tracing.bounded(long) == {"lakewright.partition": "x" * 256, "lakewright.version": 0}


def test_both_ends_of_the_queue_are_described_by_the_conventions_for_messaging() -> None:
    sent = tracing.messaging(SpanName.ENQUEUE, "default", jobs=3)
    taken = tracing.messaging(SpanName.RUN, "default", job="j-1")
    assert (sent["messaging.operation.type"], sent["messaging.batch.message_count"]) == ("send", 3)
    assert (taken["messaging.operation.type"], taken["messaging.message.id"]) == ("process", "j-1")
    assert "messaging.batch.message_count" not in taken


def test_a_span_starts_below_its_parent_with_the_valid_contexts_as_links(tracer: RecordingTracer) -> None:
    tracing.start(SpanName.RUN, Origin(SAMPLED[0], (SAMPLED[1], "no context")), {})
    (only,) = tracer.spans
    assert only.origin == Origin(SAMPLED[0], (SAMPLED[1],))
