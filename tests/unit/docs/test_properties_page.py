"""docs/properties.md says of each property what the code does: its rows are compared with the literal table."""

from pathlib import Path

import pytest

from shared.properties import MANUAL, PREFIX, PROPERTIES, REFUSED, Property

PAGE = Path(__file__).resolve().parents[3] / "docs" / "properties.md"


def row(prop: Property) -> str:
    """A row of the page; `|` would end a cell, and no text has one."""
    aliases = ", ".join(f"`{name}`" for name in prop.aliases)
    return f"| `{PREFIX}{prop.name}` | {prop.default} | {prop.meaning} | {aliases} |"


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_the_page_has_the_row_of_each_property(prop: Property) -> None:
    assert row(prop) in PAGE.read_text().splitlines(), f"docs/properties.md lacks this row:\n{row(prop)}"


def test_the_page_has_no_row_of_a_property_that_is_none() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{PREFIX}")]
    assert len(rows) == len(PROPERTIES)


@pytest.mark.parametrize("name", [*REFUSED, MANUAL])
def test_the_page_names_what_is_refused_and_what_starts_a_run(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text()
