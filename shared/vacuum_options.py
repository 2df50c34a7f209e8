"""What a vacuum is to do beyond the table's policy, as its job carries it from decider to actor."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VacuumOptions:
    """Options of one vacuum.

    with_orphans: list the store for files that no commit names. force: `retain_s` counts although it is below the least
    retention. retain_s: seconds for which removed files stay; None: as the policy says.
    """

    with_orphans: bool = False
    force: bool = False
    retain_s: int | None = None

    def encode(self) -> dict[str, int]:
        """Write as the options of a job."""
        retain = {} if self.retain_s is None else {"retain_s": self.retain_s}
        return {"with_orphans": int(self.with_orphans), "force": int(self.force), **retain}

    @staticmethod
    def decode(options: Mapping[str, int]) -> "VacuumOptions":
        """Read the options of a job."""
        return VacuumOptions(
            bool(options.get("with_orphans", 0)), bool(options.get("force", 0)), options.get("retain_s")
        )
