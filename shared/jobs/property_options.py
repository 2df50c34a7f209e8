"""Properties that an ALTER TABLE of ours is to set, as its job carries them to the actor.

Only properties of Lakewright: others may upgrade a table's protocol, and lock its readers out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.errors import InvalidInput
from shared.policy.names import PREFIX
from shared.typed_json import JsonObject

PROPERTIES_SET = "changed"
"""Figure of a run after which the table has the properties: how many of them it changed, 0 if all were there."""

ALREADY_SET = "the table has these properties already"


@dataclass(frozen=True, slots=True)
class PropertyOptions(JsonObject):
    """Options of one run: property values by full name; raises InvalidInput for a property that is not Lakewright's."""

    values: Mapping[str, str] = field(hash=False)

    def __post_init__(self) -> None:
        for name in self.values:
            if not name.startswith(PREFIX):
                raise InvalidInput(
                    f"{name} is not a property of Lakewright", field="properties", allowed=f"{PREFIX}..."
                )

    def missing(self, configuration: Mapping[str, str]) -> dict[str, str]:
        """Return the properties that a table with this configuration does not have yet."""
        return {name: value for name, value in self.values.items() if configuration.get(name) != value}
