"""Options of a run on a table's index beyond the table's own properties, as its job carries them to the actor."""

from dataclasses import dataclass

from shared.typed_json import JsonObject


@dataclass(frozen=True, slots=True)
class IndexJobOptions(JsonObject):
    """Options of one run: the revision to optimize and the bytes of one iteration; None: the table's."""

    revision: int | None = None
    budget_bytes: int | None = None
