"""Options of a run of a clustered table's OPTIMIZE beyond the table's policy, as its job carries them to the actor."""

from dataclasses import dataclass

from shared.typed_json import JsonObject


@dataclass(frozen=True, slots=True)
class ClusterOptions(JsonObject):
    """Options of one run; force: a person requested it, so it runs whatever share of the bytes is not clustered."""

    force: bool = False
