"""Options of a removal of older rows beyond the table's policy, as its job carries them from decider to actor."""

from dataclasses import dataclass

from shared.typed_json import JsonObject


@dataclass(frozen=True, slots=True)
class DeduplicateOptions(JsonObject):
    """Options of one run.

    since_version: up to which all rows were compared before, so that partitions unchanged since are left out; -1: none
    were. dry_run: count the rows, and change nothing.
    """

    since_version: int = -1
    dry_run: bool = False
