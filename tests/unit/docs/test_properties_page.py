"""docs/properties.md says of each property what the code does: its rows are compared with the literal table."""

import re
from pathlib import Path

import pytest

from decider.state.effective_policy import LogStatus, PolicyDefaults, PolicyOrigin, PolicySource
from shared.policy.names import MANUAL, PREFIX
from shared.policy.policy import Policy
from shared.policy.property import Property
from shared.policy.property_table import PROPERTIES
from shared.policy.refused_properties import REFUSED
from shared.table import TableId, TableRef
from tests.support.property_samples import GOOD

PAGE = Path(__file__).resolve().parents[3] / "docs" / "properties.md"
TABLE = TableRef(TableId("t"), "t", "file:///t")


def table_rows(header: str) -> list[list[str]]:
    """The partitions of each row below a header of the page."""
    lines = PAGE.read_text().splitlines()
    start = lines.index(header) + 2
    rows: list[list[str]] = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([partition.strip() for partition in line.strip("|").split("|")])
    return rows


def names_in(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


OBEYED = [
    name
    for partitions in table_rows("| property | default | meaning | also accepted |")
    for name in names_in(partitions[0]) + names_in(partitions[3])
]
IGNORED = [name for partitions in table_rows("| property | what to do |") for name in names_in(partitions[0])]


def row(prop: Property) -> str:
    """A row of the page; `|` would end a partition, and no text has one."""
    aliases = ", ".join(f"`{name}`" for name in prop.aliases)
    return f"| `{PREFIX}{prop.name}` | {prop.default} | {prop.description} | {aliases} |"


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_the_page_has_the_row_of_each_property(prop: Property) -> None:
    assert row(prop) in PAGE.read_text().splitlines(), f"docs/properties.md lacks this row:\n{row(prop)}"


def test_the_page_has_no_row_of_a_property_that_is_none() -> None:
    assert len(table_rows("| property | default | meaning | also accepted |")) == len(PROPERTIES)


@pytest.mark.parametrize("name", [*REFUSED, MANUAL])
def test_the_page_names_what_is_refused_and_what_starts_a_run(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text()


@pytest.mark.parametrize("name", OBEYED)
def test_each_name_on_the_page_takes_effect_on_the_policy_and_says_so(name: str) -> None:
    """The sample differs from the default, so that dropping it silently would be seen."""
    samples = [sample for sample in GOOD if sample[0] == name and sample[3] != getattr(Policy(), sample[2])]
    samples = samples or [sample for sample in GOOD if sample[0] == name]
    _, value, field, expected = samples[0]
    found = PolicyDefaults(queue="").resolve(TABLE, {name: value}, {}, LogStatus())
    assert found.issues == ()
    assert getattr(found.policy, field) == expected
    assert found.origins[field] == PolicyOrigin(PolicySource.TABLE, name)


@pytest.mark.parametrize("name", IGNORED)
def test_each_name_that_the_page_calls_ignored_is_shown_with_a_reason_and_changes_nothing(name: str) -> None:
    found = PolicyDefaults(queue="").resolve(TABLE, {name: "24", "lakewright.fan-in": "4"}, {}, LogStatus())
    (issue,) = found.issues
    assert (issue.property, issue.value, issue.is_blocking) == (name, "24", False)
    assert "is ignored" in issue.reason or "use lakewright." in issue.reason
    assert found.policy == Policy(fan_in=4, fits_levels=False)


def test_the_page_lists_every_name_that_is_obeyed_or_ignored() -> None:
    assert set(OBEYED) == {name for name, *_ in GOOD}
    assert set(IGNORED) == set(REFUSED)
