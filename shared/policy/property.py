"""Type of a table property; `shared.policy.property_table` lists all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from shared.policy.parsers import Parser
from shared.policy.policy import Policy

_FIELDS = frozenset(one.name for one in fields(Policy))


@dataclass(frozen=True, slots=True)
class Property:
    """One policy field as a table property: its name behind `lakewright.`, default as people write it, and meaning.

    `aliases` are names of other systems that mean the same, each with the parser of that system's spelling; `unit` is
    the field's, which is the one of the property's own name if no other is given.
    """

    name: str
    parse: Parser
    default: str
    description: str
    unit: str = ""
    aliases: Mapping[str, Parser] = field(default_factory=dict)
    policy_field: str = ""

    def __post_init__(self) -> None:
        own = self.name.replace("-", "_")
        of_name = next((one for one in (own, f"{own}_s", f"{own}_bytes") if one in _FIELDS), "")
        object.__setattr__(self, "policy_field", self.policy_field or of_name)
