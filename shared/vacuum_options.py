"""What a vacuum is to do beyond the table's policy, as its job carries it from decider to actor."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VacuumOptions:
    """Options of one vacuum.

    with_orphans: list the store for files that no commit names. force: `retain_s` counts although it is below the least
    retention. retain_s: seconds for which removed files stay; None: as the policy says. requested_ms: when a person
    requested it, in milliseconds since 1970: what is removed later than that is history of a later request.
    """

    with_orphans: bool = False
    force: bool = False
    retain_s: int | None = None
    requested_ms: int | None = None

    def encode(self) -> dict[str, int]:
        """Write as the options of a job."""
        given = {"retain_s": self.retain_s, "requested_ms": self.requested_ms}
        known = {name: value for name, value in given.items() if value is not None}
        return {"with_orphans": int(self.with_orphans), "force": int(self.force), **known}

    @staticmethod
    def decode(options: Mapping[str, int]) -> "VacuumOptions":
        """Read the options of a job."""
        return VacuumOptions(
            bool(options.get("with_orphans", 0)),
            bool(options.get("force", 0)),
            options.get("retain_s"),
            options.get("requested_ms"),
        )
