"""What a table property is; `shared.property_table` lists all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.property_parsers import Parser


@dataclass(frozen=True, slots=True)
class Property:
    """One policy field as a table property: its name behind `lakewright.`, default as people write it, and meaning.

    `aliases` are names of other systems that mean the same, each with the parser of that system's spelling; `unit` is
    that of the field.
    """

    name: str
    policy_field: str
    parse: Parser
    default: str
    description: str
    unit: str = ""
    aliases: Mapping[str, Parser] = field(default_factory=dict)
