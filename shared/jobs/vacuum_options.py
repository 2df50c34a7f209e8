"""Options of a vacuum beyond the table's policy, as its job carries them from decider to actor."""

from dataclasses import dataclass

from shared.typed_json import JsonObject


@dataclass(frozen=True, slots=True)
class VacuumOptions(JsonObject):
    """Options of one vacuum.

    with_orphans: list the store for files that no commit names. force: `retain_s` counts although it is below the least
    retention. retain_s: seconds for which removed files stay; None: as the policy says. requested_ms: when a person
    requested it, in milliseconds since 1970: what is removed later than that is history of a later request.
    """

    with_orphans: bool = False
    force: bool = False
    retain_s: int | None = None
    requested_ms: int | None = None
