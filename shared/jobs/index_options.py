"""Options of a run on a table's index beyond the table's own properties, as its job carries them to the actor."""

from dataclasses import dataclass

from shared.typed_json import JsonObject


@dataclass(frozen=True, slots=True)
class IndexJobOptions(JsonObject):
    """Options of one run: the revision to optimize and the bytes of one iteration; None: the table's.

    whole_revision: all files of it are rewritten at once, unless it is as compact as it can be.
    only_verifies: nothing is written; rows of all files are compared with the blocks that they should be in.
    """

    revision: int | None = None
    budget_bytes: int | None = None
    whole_revision: bool = False
    only_verifies: bool = False
