"""A Control that tests steer by: what shall happen at which point, deterministically and without threads."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


def _nothing() -> None:
    pass


@dataclass(slots=True)
class Steering:
    """Runs an action at a labelled point or before the n-th commit, and notes every call in order."""

    at: dict[str, Callable[[], object]] = field(default_factory=dict)
    before_commit: Iterable[Callable[[], object]] = ()  # One action for each commit attempt, then none.
    stop: Callable[[], bool] = lambda: False
    calls: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.before_commit = iter(self.before_commit)

    def may_commit(self) -> None:
        self._note("may_commit")
        next(self.before_commit, _nothing)()  # type: ignore[call-overload]

    def should_stop(self) -> bool:
        return self.stop()

    def reached(self, point: str) -> None:
        self._note(point)
        self.at.get(point, _nothing)()

    def _note(self, call: str) -> None:
        with self._lock:
            self.calls.append(call)


def at_commit(*actions: Callable[[], object]) -> Steering:
    """Run one when each attempt is open: the format's own library has to find the conflict."""
    return Steering(before_commit=actions)


def when_written(*actions: Callable[[], object]) -> Steering:
    """Run them when our files are written and no attempt is open: our own reading has to find it."""
    return Steering(at={"files_written": lambda: [action() for action in actions]})
