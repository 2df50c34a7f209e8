"""Lakewright: a decider, and two actors that are told of commits by events and by the decider's sweep."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata

from tests.jepsen.rival import BY_PYICEBERG, Place, Rival


@dataclass(frozen=True, slots=True)
class Lakewright(Rival):
    """All processes as in production."""

    is_ours: bool = True

    def version(self) -> str:
        return metadata.version("lakewright")

    def begin(self, place: Place, seed: int) -> Sequence[str]:
        place.home.start_services()
        return place.home.actors()

    def start_again(self, place: Place, name: str) -> None:
        place.home.start_actor(name)

    def is_ready(self, place: Place, name: str) -> bool:
        return place.home.is_ready(name)

    def services(self) -> Sequence[str]:
        return ("decider",)

    def failures(self, log: str) -> Counter[str]:
        from tests.soak.verdict import job_errors

        return job_errors(log)


@dataclass(frozen=True, slots=True)
class LakewrightOnIceberg(Lakewright):
    """The same on tables of a catalog."""

    def begin(self, place: Place, seed: int) -> Sequence[str]:
        workers = Lakewright.begin(self, place, seed)
        for name in place.tables:
            body = {"location": f"catalog://lake/{name.replace('.', '/')}", "name": name}
            place.home.stack.post("/v1/tables", body).raise_for_status()
        return workers


RIVALS = (
    Lakewright("lakewright", "Lakewright on Delta"),
    LakewrightOnIceberg("lakewright-iceberg", "Lakewright on Iceberg", writers=BY_PYICEBERG),
)
