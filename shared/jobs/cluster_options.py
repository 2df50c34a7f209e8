"""Options of a run on a clustered table beyond the table's policy, as its job carries them to the actor."""

from dataclasses import dataclass

from shared.typed_json import JsonObject


@dataclass(frozen=True, slots=True)
class ClusterOptions(JsonObject):
    """Options of one run.

    force: a person requested it, so it runs whatever share of the bytes is not clustered, and on a table in cells until
    nothing is due. commit_bytes: what a commit brings, where that is known.
    """

    force: bool = False
    commit_bytes: int = 0
