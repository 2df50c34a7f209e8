"""What an attack is: a name, and a run against a world of its own that yields limits, each met or not.

A module below `tests/attacks/cases` lists its attacks in `ATTACKS`; nothing else has to be registered. A limit is never
a number of milliseconds: it is a count, a state, or a ratio to what the same run measured before its attack.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.attacks import cases
from tests.support.redis_server import RedisServer
from tests.support.stack import Stack


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of an attack: the promise, whether it was kept, and what was seen."""

    promise: str
    is_met: bool
    seen: str = ""

    def __str__(self) -> str:
        """Show it on a line."""
        return f"  {'met    ' if self.is_met else 'NOT MET'}  {self.promise}: {self.seen}"


@dataclass(frozen=True, slots=True)
class AttackWorld:
    """What an attack may use: an empty folder, a Redis of its own, and services that end with the attack."""

    folder: Path
    redis: RedisServer
    stack: Stack


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack; `run` prepares, attacks, and yields its limits as soon as each is known."""

    name: str
    run: Callable[[AttackWorld], Iterable[Limit]]


def all_attacks(only: str = "") -> Iterator[Attack]:
    """Yield the attacks of all modules whose name contains a match of the expression, in the order of the modules."""
    for found in sorted(pkgutil.iter_modules(cases.__path__), key=lambda one: one.name):
        module = importlib.import_module(f"{cases.__name__}.{found.name}")
        yield from (attack for attack in module.ATTACKS if re.search(only, attack.name))
