"""Lakewright: a decider, and two actors that are told of commits by events and by the decider's sweep."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from tests.jepsen.rival import Rival

if TYPE_CHECKING:
    from tests.soak.household import Household


@dataclass(frozen=True, slots=True)
class Lakewright(Rival):
    """All processes as in production."""

    def version(self) -> str:
        return metadata.version("lakewright")

    def begin(self, home: "Household", seed: int) -> Sequence[str]:
        home.start_services()
        return home.actors()

    def start_again(self, home: "Household", name: str) -> None:
        home.start_actor(name)

    def is_ready(self, home: "Household", name: str) -> bool:
        return home.is_ready(name)

    def services(self) -> Sequence[str]:
        return ("decider",)

    def failures(self, log: str) -> Counter[str]:
        from tests.soak.verdict import job_errors

        return job_errors(log)


RIVALS = (Lakewright("lakewright", "Lakewright", is_ours=True),)
