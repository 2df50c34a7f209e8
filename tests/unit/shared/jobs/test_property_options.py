"""A job sets properties of Lakewright alone, and only those that a table does not have."""

import pytest

from shared.errors import InvalidInput
from shared.jobs.property_options import PropertyOptions


def test_options_name_what_a_table_lacks() -> None:
    options = PropertyOptions({"lakewright.fan-in": "4", "lakewright.tolerance": "0.1"})
    assert options.missing({}) == options.values
    assert options.missing({"lakewright.fan-in": "4", "lakewright.tolerance": "0.2"}) == {"lakewright.tolerance": "0.1"}
    assert options.missing({**options.values, "owner": "x"}) == {}


@pytest.mark.parametrize("name", ["delta.enableDeletionVectors", "write.format.default", "fan-in"])
def test_a_property_that_may_lock_readers_out_is_never_set(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a property of Lakewright"):
        PropertyOptions({"lakewright.fan-in": "4", name: "true"})
