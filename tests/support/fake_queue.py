"""A queue without a server: it keeps what was sent and answers as a test says, and a clock that a test moves."""

from collections.abc import Callable
from typing import Any

from shared.queue.command import Command
from shared.queue.lua_library import ScriptName


class FakeClock:
    """A monotonic clock in seconds that moves only when it is asked to."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class FakeQueue:
    """Stands for `actor.queue_executor.SyncQueueExecutor`; `answer` returns a script's raw reply, or raises."""

    name = "default"

    def __init__(self, answer: Callable[[Command], Any]) -> None:
        self.answer = answer
        self.sent: list[Command] = []

    def run(self, transition: Command) -> Any:
        self.sent.append(transition)
        return transition.decode(self.answer(transition))

    def scripts(self) -> list[ScriptName]:
        return [transition.script for transition in self.sent]
