"""What a run of a clustered table's OPTIMIZE is to do beyond the table's policy, as its job carries it to the actor."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Options of one run; force: a person requested it, so it runs whatever share of the bytes is not clustered."""

    force: bool = False

    def encode(self) -> dict[str, int]:
        """Write as the options of a job."""
        return {"force": int(self.force)}

    @staticmethod
    def decode(options: Mapping[str, int]) -> "ClusterOptions":
        """Read the options of a job."""
        return ClusterOptions(bool(options.get("force", 0)))
