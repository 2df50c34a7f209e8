"""A costly read is made once for all who wait, one at a time, and none gets what was read before its question."""

import asyncio

import pytest
from pydantic import BaseModel

from decider.api.shared_reads import MAX_WAITING, SharedReads
from decider.web.errors import ApiError


class Answer(BaseModel):
    """What was read."""

    number: int


class Reads:
    """Reads that take until they are released."""

    def __init__(self) -> None:
        self.begun = self.at_once = self.most = 0
        self.inside, self.release = asyncio.Event(), asyncio.Event()

    async def make(self) -> Answer:
        self.begun += 1
        number = self.begun
        self.inside.set()
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.release.wait()
        self.at_once -= 1
        return Answer(number=number)


async def test_all_who_wait_share_the_next_read_and_none_gets_one_that_began_before_it_asked() -> None:
    shared, reads = SharedReads(), Reads()
    first = asyncio.create_task(shared.get("queue", reads.make))
    await reads.inside.wait()
    others = [asyncio.create_task(shared.get("queue", reads.make)) for _ in range(16)]
    another = asyncio.create_task(shared.get("backlog", reads.make))
    await asyncio.sleep(0)
    reads.release.set()
    assert (await first).body == b'{"number":1}'
    assert {bytes((await one).body) for one in others} == {b'{"number":2}'}
    assert (await another).body == b'{"number":3}'
    assert (reads.begun, reads.most) == (3, 1)


async def test_too_many_different_reads_are_refused_and_one_that_fails_keeps_no_other_out() -> None:
    shared, reads = SharedReads(), Reads()
    waiting = [asyncio.create_task(shared.get(f"read {number}", reads.make)) for number in range(MAX_WAITING + 1)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError, match="Too many"):
        await waiting[-1]
    reads.release.set()
    await asyncio.gather(*waiting[:-1])

    async def failing() -> Answer:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await shared.get("queue", failing)
    assert (await shared.get("queue", reads.make)).status_code == 200
