"""What a tables file declares, and where its mistakes are."""

import pytest

from decider.declared.tables_file import MAX_BYTES, MAX_DEPTH, DeclaredTables, TablesFileReader
from decider.events.resolver import AllowedRoots
from decider.state.effective_policy import PolicyDefaults
from shared.errors import InvalidInput
from shared.table import TableRef

ROOTS = AllowedRoots(roots=("s3://lake",))


def read(text: str | bytes, roots: AllowedRoots = ROOTS) -> DeclaredTables:
    data = text if isinstance(text, bytes) else text.encode()
    return TablesFileReader(roots, PolicyDefaults).read(data, "tables.yaml")


def test_all_fields_are_read_and_values_are_as_they_are_written() -> None:
    (table,) = read(
        "tables:\n"
        "  - location: s3a://lake/sales/orders/\n"
        "    name: shop.orders\n"
        "    tenant: shop\n"
        "    paused: true\n"
        "    properties:\n"
        "      lakewright.target-file-size: 256mb\n"
        "      lakewright.min-input-files: 8\n"
        "      lakewright.enabled: true\n"
    ).tables.values()
    assert (table.location, table.name, table.tenant, table.paused) == (
        "s3://lake/sales/orders",
        "shop.orders",
        "shop",
        True,
    )
    assert table.properties == {
        "lakewright.target-file-size": "256mb",
        "lakewright.min-input-files": "8",
        "lakewright.enabled": "true",
    }
    assert table.place == "line 2:5"


def test_name_and_tenant_follow_from_the_location_as_for_a_table_that_discovery_finds() -> None:
    (table,) = read("tables: [{location: s3://lake/sales/orders}]").tables.values()
    assert (table.name, table.tenant, table.paused) == ("sales.orders", "sales", None)
    (outside,) = read("tables: [{location: s3://other/orders}]", AllowedRoots()).tables.values()
    assert outside.name == outside.id


def test_json_is_read_too_and_an_empty_list_declares_nothing() -> None:
    assert len(read('{"tables": [{"location": "s3://lake/a"}]}').tables) == 1
    assert not read("tables: []").tables


MISTAKES = {
    "": "tables.yaml: the file is empty",
    "# only a comment": "tables.yaml: the file is empty",
    "tables": "tables.yaml:1:1: the file must be a mapping",
    "{}": "tables.yaml:1:1: `tables` is missing",
    "tables:\n": "tables.yaml:1:8: `tables` must be a list",
    "table: []": "tables.yaml:1:1: 'table' is unknown in the file; known: tables",
    "tables:\n- location: [": "tables.yaml:3:1: while parsing a flow node",
    "tables:\n- location: s3://lake/a\n   name: a": "tables.yaml:3:8",
    "tables:\n- s3://lake/a": "tables.yaml:2:3: a table must be a mapping",
    "tables:\n- name: a": "tables.yaml:2:3: `location` is missing",
    "tables:\n- location: lake/a": "tables.yaml:2:13: ",
    "tables:\n- location:": "tables.yaml:2:12: location must be a text or a number",
    "tables:\n- location: [s3://lake/a]": "tables.yaml:2:13: location must be a text or a number",
    "tables:\n- location: s3://private/a": "tables.yaml:2:13: s3://private/a is outside the allowed roots",
    "tables:\n- location: s3://lake/a\n  nam: a": "tables.yaml:3:3: 'nam' is unknown in a table; known: location, name",
    "tables:\n- location: s3://lake/a\n  name: a b": "tables.yaml:3:9: 'a b' is no name",
    "tables:\n- location: s3://lake/a\n  tenant: .a": "tables.yaml:3:11: '.a' is no tenant",
    "tables:\n- location: s3://lake/a\n  paused: soon": "tables.yaml:3:11: `paused` is 'soon'; expected true or false",
    "tables:\n- location: s3://lake/a\n  properties: []": "tables.yaml:3:15: `properties` must be a mapping",
    "tables:\n- location: s3://lake/a\n  properties: {lakewright.enabled: no idea}": "tables.yaml:3:36: lak",
    "tables:\n- location: s3://lake/a\n  properties: {lakewright.enabeld: 'true'}": "tables.yaml:3:36: lakew",
    "tables:\n- location: s3://lake/a\n  location: s3://lake/b": "tables.yaml:3:3: 'location' is there twice",
    "tables:\n- location: s3://lake/a\n- location: s3a://lake/a/": (
        "tables.yaml:3:3: s3://lake/a is declared at line 2:3 already"
    ),
    "tables:\n- {location: s3://lake/a, name: x}\n- {location: s3://lake/b, name: x}": (
        "tables.yaml:3:3: the name 'x' belongs to the table at line 2:3"
    ),
    "tables: []\n---\ntables: []": "tables.yaml:2:1: expected a single document",
    "tables: !!python/object:os.system []\nother: 1": "tables.yaml:2:1: 'other' is unknown",
    "tables: [*gone]": "tables.yaml:1:10: found undefined alias",
    "tables: [\x00]": "tables.yaml",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text)
    assert str(refused.value).startswith(MISTAKES[text])


def test_a_file_that_is_no_text_or_too_large_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"tables.yaml:2: byte 0xff is not UTF-8"):
        read(b"tables:\n- \xff")
    with pytest.raises(InvalidInput, match="is the limit"):
        read(b" " * (MAX_BYTES + 1))


def test_repeated_anchors_cost_no_more_than_their_text() -> None:
    layers = "\n".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
    with pytest.raises(InvalidInput, match=r"tables.yaml:2:3: a table must be a mapping"):
        read(f"tables:\n- &a0 [x]\n{layers}")


def test_a_digest_names_the_content() -> None:
    assert read("tables: []").digest == read("tables: []").digest != read("tables: [] # none").digest


@pytest.mark.parametrize(
    ("before", "was_registered"),
    [
        ({}, True),
        ({"is_discovered": True}, False),
        ({"is_declared": True, "was_registered": True}, True),
        ({"is_declared": True}, False),
    ],
)
def test_an_entry_remembers_whether_a_call_had_registered_the_table(
    before: dict[str, bool], was_registered: bool
) -> None:
    (one,) = read("tables: [{location: s3://lake/a, name: new, tenant: t}]").tables.values()
    made = one.registration(TableRef(one.id, "old", one.location, "other", {"a": "b"}, **before))  # type: ignore[arg-type]
    assert made == TableRef(one.id, "new", one.location, "t", {}, is_declared=True, was_registered=was_registered)
    assert not one.registration(None).was_registered


def test_a_document_that_is_too_deep_is_refused_with_its_place() -> None:
    text = "tables:\n" + "- " * 2 * MAX_DEPTH
    with pytest.raises(InvalidInput, match=rf"x\.yaml:2:\d+: .* more than {MAX_DEPTH} times"):
        TablesFileReader(AllowedRoots(), PolicyDefaults).read(text.encode(), "x.yaml")
