"""Samples at equal steps: one kind of rollup for all tables together and for each of them, in bounded streams.

A stream names its fields once for many entries and packs whole numbers, so a sample takes a fraction of its JSON text.
The id of an entry is the number of its step since 1970: so the first sample of a step stays, and what is too old is
dropped with the next one.
"""

from enum import IntEnum
from typing import Any, Protocol, TypeVar

from redis.exceptions import ResponseError

from shared.queue.decode import text
from shared.typed_json import from_texts, to_texts


class SampleStep(IntEnum):
    """Milliseconds between two samples; a step has its own stream."""

    MINUTE = 60_000
    HOUR = 3_600_000


KEPT = {SampleStep.MINUTE: 1_440, SampleStep.HOUR: 720}
"""Samples of each step: minutes of a day, hours of 30 days."""

_IS_THERE = "equal or smaller than"
"""Part of the server's answer where a stream has an entry of this id, or a later one."""


class TimedSample(Protocol):
    """Figures at a time."""

    @property
    def at_ms(self) -> int:
        """Time of the sample."""


S = TypeVar("S", bound=TimedSample)


def add_sample(pipe: Any, key: str, step: SampleStep, sample: TimedSample) -> None:
    """Queue the command that keeps a sample if it is the first one of its step; `is_new` reads its answer."""
    place = sample.at_ms // step
    oldest = max(0, place - KEPT[step] + 1)
    pipe.xadd(key, to_texts(sample), id=f"{place}-1", minid=f"{oldest}-0", approximate=False)


def is_new(answer: object) -> bool:
    """Return whether `add_sample` kept its sample; raises what the server answered but that there is one."""
    if isinstance(answer, ResponseError) and _IS_THERE in str(answer):
        return False
    if isinstance(answer, Exception):
        raise answer
    return True


async def read_samples(redis: Any, key: str, step: SampleStep, kind: type[S], since_ms: int) -> tuple[S, ...]:
    """Return the samples from a time on, the oldest first."""
    entries = await redis.xrange(key, min=f"{max(0, since_ms) // step}-0")
    found = (from_texts(kind, {text(name): text(value) for name, value in raw.items()}) for _, raw in entries)
    return tuple(one for one in found if one.at_ms >= since_ms)
